"""The streams of Ren et al., 2022, section 7.1: the paper's synthetic ones, and real ones instead of the paper's."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.data.synthetic import linear_process, logistic_process, sine_process
from hubbub.protocols.window import Frequencies, Means, Statistic
from hubbub.simulate.devices import RESAMPLED, EventStream, Stream, binary_stream, normal_stream
from hubbub_papers.harness import Context
from hubbub_papers.real_streams import flights3m_stream, flights_stream, taxi_stream
from hubbub_papers.result import joined

N = 200_000
"""The paper's population."""
STEPS = 800
"""How long the paper's synthetic streams are."""
FLOOR = 0.01
"""Smaller shares count as this one in relative errors: a random walk reaches 0, where a relative error is infinite."""
OTHER = "other data"
NEEDS = ("flights", "taxi", "flights3m")
"""The data sets that `real` reads."""

Process = Callable[[int], NDArray[np.float64]]
"""From the number of a run to the share or mean at each step."""


@dataclass(frozen=True, eq=False)
class Source:
    """A stream, the question that is asked of it, and the remarks on its results.

    `make` gives the stream of a run by its number: the same for every question. The note says what the stream is, if it
    is not the paper's. Truths below `floor` count as `floor` in relative errors. `events` has the weight of each value
    in the number that is watched for events.
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
        """The title of a panel, which says so if the data is not the paper's."""
        return f"{self.name} (other data)" if self.note.startswith(OTHER) else self.name

    def remark(self, *remarks: str, steps: int | None = None) -> str:
        """The note on a result. Of the paper's own streams it states how many `steps` long they were."""
        length = "" if steps is None or self.note else length_note(steps)
        return joined(f"n = {self.n:,}", length, *remarks, self.note)


def length_note(steps: int) -> str:
    """The length of a synthetic stream, next to the paper's."""
    return f"{steps} steps" + ("" if steps == STEPS else f" (the paper: {STEPS})")


def linear(context: Context, steps: int, deviation: float = 0.0025) -> Process:
    """LNS: a random walk of its own in each run; the noise is the same for every deviation sqrt Q."""
    return lambda run: linear_process(steps, context.rng.child("LNS", run), deviation=deviation)


def sine(steps: int, b: float = 0.01) -> Process:
    """Sin, the same in every run."""
    return lambda run: sine_process(steps, b=b)


def logistic(steps: int) -> Process:
    """Log, the same in every run."""
    return lambda run: logistic_process(steps)


def binary(context: Context, name: str, process: Process, n: int = N) -> Source:
    """Devices that hold 0 or 1; the share of 1 follows the process."""
    size = context.size(n, least=100)

    def make(run: int) -> Stream:
        return binary_stream(process(run), size, context.rng.child("binary", name, run))

    return Source(name, size, make, Frequencies(2))


def normal(context: Context, name: str, process: Process, *, bound: float, floor: float) -> Source:
    """Devices that hold normal numbers of deviation 10 around the process, clipped to -bound to bound."""
    size = context.size(N, least=100)

    def make(run: int) -> Stream:
        return normal_stream(process(run), size, context.rng.child("normal", name, run))

    note = f"numbers clipped to {-bound:g} to {bound:g} on the device"
    return Source(name, size, make, Means(-bound, bound), note, floor, events=(1.0,))


def synthetic(context: Context, steps: int) -> list[Source]:
    """The paper's three binary streams: LNS, Sin and Log."""
    processes = {"LNS": linear(context, steps), "Sin": sine(steps), "Log": logistic(steps)}
    return [binary(context, name, process) for name, process in processes.items()]


def replay(context: Context, name: str, stream: EventStream) -> Source:
    """Real devices, in a new order, and so in new cohorts, every run; scaled down, a random part of them."""
    size = context.size(stream.n, least=100)
    symbols = len(stream.labels)

    def make(run: int) -> Stream:
        return stream.shuffled(context.rng.child("replay", name, run), size)

    note = f"{OTHER}: {stream.data}, {stream.steps} steps"
    return Source(name, size, make, Frequencies(symbols), note, events=(0.0,) + (1.0,) * (symbols - 1))


def real(context: Context, *, steps: int, resampled_steps: int) -> list[Source]:
    """The real streams. Those of fewer than 20,000 devices are there as they are, for `steps`, and resampled."""
    small = {"Aircraft": flights_stream(), "NYC taxi": taxi_stream()}
    sources = []
    for name, stream in small.items():
        sources.append(replay(context, name, stream.first(steps)))
        sources.append(replay(context, f"{name}, {RESAMPLED:,}", stream.resampled().first(resampled_steps)))
    return [*sources, replay(context, "US flights", flights3m_stream().first(resampled_steps))]
