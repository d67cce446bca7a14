"""Simulated devices answer asks: the driver that runs a protocol against a population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.random import Random
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask, Release
from hubbub.protocols.cohort import CIRCLE
from hubbub.protocols.driver import Protocol, converse
from hubbub.protocols.window import Statistic, window_stream
from hubbub.simulate.devices import Stream, sorted_places
from hubbub.simulate.ledgers import Ledgers

__all__ = ["Population", "StreamRun", "Traffic", "run_stream", "run_window"]

CHUNK = 1 << 17


@dataclass
class Traffic:
    """What was said, both ways: messages and bits. A standing ask is published once and needs no further word."""

    reports: int = 0
    report_bits: int = 0
    instructions: int = 0
    instruction_bits: int = 0

    def per_device_and_step(self, n: int, steps: int) -> float:
        """Bits both ways, for each device and step.

        Example:
            >>> Traffic(report_bits=10, instruction_bits=10).per_device_and_step(5, 2)
            2.0
        """
        return (self.report_bits + self.instruction_bits) / (n * steps)


class Population:
    """Devices with places on the circle and a ledger each, answering from a stream.

    Chunks of devices are randomised and folded one after another, so that a population larger than memory can
    pass through.

    Example:
        >>> from hubbub import GRR
        >>> from hubbub.simulate.devices import ArrayStream
        >>> people = Population(ArrayStream(np.array([[0, 1, 1, 1]]), domain=2), Random(seed=1))
        >>> people.answer(Ask(mechanism=GRR(epsilon=1.0, domain=2), step=1)).n, people.traffic.reports
        (4, 4)
    """

    def __init__(self, stream: Stream, rng: Random, *, ledgers: Ledgers | None = None) -> None:
        self.stream, self.rng, self.ledgers = stream, rng, ledgers
        self.places: NDArray[np.uint32] = sorted_places(stream.n, rng)
        self.traffic = Traffic()

    def answer(self, ask: Ask) -> Sketch:
        """Everyone on the arc answers; the sketch of it."""
        assert isinstance(ask.mechanism, Mechanism)
        sketch = ask.mechanism.empty()
        for low, high in ask.cohort.pieces():
            first, last = (self._before(edge) for edge in (low, high))
            if self.ledgers is not None:
                self.ledgers.charge(ask.event(), first, last)
            for start in range(first, last, CHUNK):
                values = self.stream.values(ask.step, start, min(start + CHUNK, last))
                sketch = sketch + ask.mechanism.accumulate(ask.mechanism.randomize(ask.view(values), self.rng))
        self.traffic.reports += sketch.n
        self.traffic.report_bits += sketch.n * ask.mechanism.report_bits
        if not ask.standing:
            self.traffic.instructions += sketch.n
            self.traffic.instruction_bits += sketch.n
        return sketch

    def _before(self, edge: int) -> int:
        """How many devices have a place below the edge."""
        return self.stream.n if edge == CIRCLE else int(np.searchsorted(self.places, np.uint32(edge)))


@dataclass(frozen=True)
class StreamRun:
    """What a protocol released over a stream, beside the truth.

    Example:
        >>> from hubbub.protocols.window import Frequencies, window_stream
        >>> from hubbub.simulate.devices import ArrayStream
        >>> stream = ArrayStream(np.tile([0, 1, 1, 1], (5, 100)), domain=2)
        >>> run = run_stream(window_stream("LSP", Frequencies(2), epsilon=8.0, w=5), stream, Random(seed=1))
        >>> run.values.shape, bool(run.mse < 1e-3), run.bits_per_device_and_step
        ((5, 2), True, 0.4)
    """

    values: NDArray[np.float64]
    variances: NDArray[np.float64]
    truth: NDArray[np.float64]
    published: NDArray[np.bool_]
    spent: NDArray[np.float64]
    traffic: Traffic
    n: int
    centres: NDArray[np.float64]

    @property
    def mse(self) -> float:
        """The mean squared error over steps and values."""
        return float(np.mean((self.values - self.truth) ** 2))

    def mre(self, floor: float = 1e-3) -> float:
        """The mean relative error, with truths below `floor` counted as `floor`."""
        return float(np.mean(np.abs(self.values - self.truth) / np.maximum(np.abs(self.truth), floor)))

    def coverage(self, level: float = 0.95) -> float:
        """How often the intervals hold the truth, of those that are known."""
        from statistics import NormalDist

        reach = NormalDist().inv_cdf(0.5 + level / 2) * np.sqrt(self.variances)
        low, high = np.minimum(self.values, self.centres - reach), np.maximum(self.values, self.centres + reach)
        return float(np.mean(((low <= self.truth) & (self.truth <= high))[np.isfinite(self.variances)]))

    @property
    def bits_per_device_and_step(self) -> float:
        """Communication both ways."""
        return self.traffic.per_device_and_step(self.n, len(self.values))


def run_stream(
    protocol: Protocol, stream: Stream, rng: Random, *, steps: int | None = None, ledgers: Ledgers | None = None
) -> StreamRun:
    """Run a protocol over a stream, to its end or for so many steps.

    Example:
        >>> from hubbub.protocols.window import Frequencies, window_stream
        >>> from hubbub.simulate.devices import ArrayStream
        >>> stream = ArrayStream(np.tile([0, 1], (6, 50)), domain=2)
        >>> run_stream(window_stream("LPU", Frequencies(2), epsilon=8.0, w=2), stream, Random(seed=1)).traffic.reports
        300
    """
    steps = stream.steps if steps is None else steps
    if steps is None or steps < 1 or (stream.steps is not None and steps > stream.steps):
        raise InvalidValue("steps", steps, f"a number of steps from 1 to {stream.steps or 'as many as you like'}")
    people = Population(stream, rng, ledgers=ledgers)
    releases: list[Release] = []
    truth = []
    for release in converse(protocol, people.answer, steps=steps):
        releases.append(release)
        truth.append(stream.truth(release.step))
    return StreamRun(
        values=np.array([release.estimate.value for release in releases]),
        variances=np.array([release.estimate.variance for release in releases]),
        truth=np.array(truth),
        published=np.array([release.published for release in releases]),
        spent=np.array([release.spent for release in releases]),
        traffic=people.traffic,
        n=stream.n,
        centres=np.array([_centre(release.estimate) for release in releases]),
    )


def _centre(estimate: Estimate) -> NDArray[np.float64]:
    return estimate.value if estimate.centre is None else estimate.centre


def run_window(
    method: str, question: Statistic, stream: Stream, rng: Random, *, epsilon: float, w: int, **options: Any
) -> StreamRun:
    """Run a window stream over a whole stream, every device's ledger charged; what cannot work is refused first.

    Example:
        >>> from hubbub.protocols.window import Frequencies
        >>> from hubbub.simulate.devices import ArrayStream
        >>> stream = ArrayStream(np.tile([0, 1], (6, 50)), domain=2)
        >>> run_window("LPU", Frequencies(2), stream, Random(seed=1), epsilon=8.0, w=200)
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: w: got 200; allowed: at most the 6 steps of the stream
    """
    protocol = window_stream(method, question, epsilon=epsilon, w=w, **options)
    if stream.steps is not None and w > stream.steps:
        raise InvalidValue("w", w, f"at most the {stream.steps} steps of the stream")
    if w > stream.n:
        raise InvalidValue("w", w, f"at most the {stream.n} devices, or a window has steps that nobody answers")
    return run_stream(protocol, stream, rng, ledgers=Ledgers(stream.n, epsilon=epsilon, w=w))
