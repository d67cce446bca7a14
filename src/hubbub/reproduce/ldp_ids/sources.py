"""The streams of LDP-IDS, section 7.1: the paper's synthetic ones, and real ones in the place of those it had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.data.processes import linear_process, logistic_process, sine_process
from hubbub.protocols.window import Frequencies, Means, Statistic
from hubbub.reproduce.harness import Context
from hubbub.simulate.devices import Stream
from hubbub.simulate.event_stream import RESAMPLED, EventStream
from hubbub.simulate.real_streams import flights3m_stream, flights_stream, taxi_stream
from hubbub.simulate.streams import binary_stream, normal_stream

N = 200_000
"""The paper's population."""
STEPS = 800
"""How long the paper's synthetic streams are."""
FLOOR = 0.01
"""Shares below it count as it in relative errors: a share of 0 has none, and a random walk gets there."""
OTHER = "other data"
NEEDS = ("flights", "taxi", "flights3m")
"""The data sets that `real` reads."""

Process = Callable[[int], NDArray[np.float64]]
"""How a share or mean moves, in a run."""


@dataclass(frozen=True, eq=False)
class Source:
    """A stream by name, what is asked of it, and what is to be said of it beside a result.

    Parameters
    ----------
    name, n
        As in the rows of a table; how many devices there are.
    make
        The stream of a run; the same run has the same stream, whatever it is asked.
    question
        What every step asks.
    note
        What it is, where it is not the paper's.
    floor
        Truths below it count as it in relative errors.
    events
        The weight of each value in the number that is watched for events.
    """

    name: str
    n: int
    make: Callable[[int], Stream]
    question: Statistic
    note: str = ""
    floor: float = FLOOR
    events: tuple[float, ...] = (0.0, 1.0)

    @property
    def title(self) -> str:
        """The name over a panel, which says where the data is not the paper's."""
        return f"{self.name} (other data)" if self.note.startswith(OTHER) else self.name

    def remark(self, *more: str) -> str:
        """What to note beside a result on it."""
        return "; ".join(part for part in (f"n = {self.n:,}", *more, self.note) if part)


def length(steps: int) -> str:
    """How long a synthetic stream was, in words.

    Example:
        >>> length(800), length(400)
        ('800 steps', '400 steps (the paper: 800)')
    """
    return f"{steps} steps" + ("" if steps == STEPS else f" (the paper: {STEPS})")


def linear(context: Context, steps: int, deviation: float = 0.0025) -> Process:
    """LNS: a run's random walk; the same noise whatever its deviation, sqrt Q."""
    return lambda run: linear_process(steps, context.rng.child("LNS", run), deviation=deviation)


def sine(steps: int, b: float = 0.01) -> Process:
    """Sin, the same in every run."""
    return lambda run: sine_process(steps, b=b)


def logistic(steps: int) -> Process:
    """Log, the same in every run."""
    return lambda run: logistic_process(steps)


def binary(context: Context, name: str, process: Process, n: int = N) -> Source:
    """Devices that hold 0 or 1, the share of 1 moving as the process."""
    size = context.size(n, least=100)

    def make(run: int) -> Stream:
        return binary_stream(process(run), size, context.rng.child("binary", name, run))

    return Source(name, size, make, Frequencies(2))


def normal(context: Context, name: str, process: Process, *, bound: float, floor: float) -> Source:
    """Devices that hold normal numbers of deviation 10 whose mean moves as the process; the range asked is +-bound."""
    size = context.size(N, least=100)

    def make(run: int) -> Stream:
        return normal_stream(process(run), size, context.rng.child("normal", name, run))

    note = f"numbers clipped to {-bound:g} to {bound:g} on the device"
    return Source(name, size, make, Means(-bound, bound), note, floor, events=(1.0,))


def replay(context: Context, name: str, stream: EventStream) -> Source:
    """Real devices, in a new order and so in new cohorts every run; scaled down, a random part of them."""
    size = context.size(stream.n, least=100)
    symbols = len(stream.labels)

    def make(run: int) -> Stream:
        return stream.shuffled(context.rng.child("replay", name, run), size)

    note = f"{OTHER}: {stream.data}, {stream.steps} steps"
    return Source(name, size, make, Frequencies(symbols), note, events=(0.0,) + (1.0,) * (symbols - 1))


def real(context: Context, *, steps: int, resampled_steps: int) -> list[Source]:
    """The real streams: those of fewer than 20,000 devices as they are and resampled, and all for so many steps."""
    few = {"Aircraft": flights_stream(), "NYC taxi": taxi_stream()}
    sources = []
    for name, stream in few.items():
        sources.append(replay(context, name, stream.first(steps)))
        sources.append(replay(context, f"{name}, {RESAMPLED:,}", stream.resampled().first(resampled_steps)))
    return [*sources, replay(context, "US flights", flights3m_stream().first(resampled_steps))]
