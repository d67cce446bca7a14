"""Running a protocol over a fleet of simulated devices, and comparing its releases with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.confidence import normal_reach
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.random import Random
from hubbub.protocols.driver import Protocol, converse
from hubbub.protocols.release import Release
from hubbub.protocols.window import Statistic, window_stream
from hubbub.simulate.devices import Stream
from hubbub.simulate.fleet import Fleet, Traffic
from hubbub.simulate.ledgers import Ledgers
from hubbub.simulate.runs import Run


@dataclass(frozen=True)
class StreamRun(Run):
    """The releases of a protocol over a stream, beside the truth, with what they spent and the traffic."""

    published: NDArray[np.bool_]
    spent: NDArray[np.float64]
    traffic: Traffic
    n: int
    centres: NDArray[np.float64]

    def coverage(self, level: float = 0.95) -> float:
        """The share of the finite intervals that hold the truth."""
        reach = normal_reach(level) * np.sqrt(self.variances)
        low, high = np.minimum(self.values, self.centres - reach), np.maximum(self.values, self.centres + reach)
        return float(np.mean(((low <= self.truth) & (self.truth <= high))[np.isfinite(self.variances)]))

    @property
    def bits_per_device_and_step(self) -> float:
        """The communication in both directions."""
        return self.traffic.per_device_and_step(self.n, len(self.values))


def run_stream(
    protocol: Protocol, stream: Stream, rng: Random, *, steps: int | None = None, ledgers: Ledgers | None = None
) -> StreamRun:
    """Run a protocol over a stream, to its end or for a number of steps."""
    steps = stream.steps if steps is None else steps
    if steps is None or steps < 1 or (stream.steps is not None and steps > stream.steps):
        raise InvalidValue("steps", steps, f"a number of steps from 1 to {stream.steps or 'as many as you like'}")
    fleet = Fleet(stream, rng, ledgers=ledgers)
    releases: list[Release] = []
    truth = []
    for release in converse(protocol, fleet.answer, count=fleet.count, steps=steps):
        releases.append(release)
        truth.append(stream.truth(release.step))
    return StreamRun(
        values=np.array([release.estimate.value for release in releases]),
        variances=np.array([release.estimate.variance for release in releases]),
        truth=np.array(truth),
        published=np.array([release.published for release in releases]),
        spent=np.array([release.spent for release in releases]),
        traffic=fleet.traffic,
        n=stream.n,
        centres=np.array([_centre(release.estimate) for release in releases]),
    )


def _centre(estimate: Estimate) -> NDArray[np.float64]:
    return estimate.value if estimate.centre is None else estimate.centre


def run_window(
    method: str, question: Statistic, stream: Stream, rng: Random, *, epsilon: float, w: int, **options: Any
) -> StreamRun:
    """Run a window stream over a whole stream, with a ledger for every device."""
    protocol = window_stream(method, question, epsilon=epsilon, w=w, **options)
    if stream.steps is not None and w > stream.steps:
        raise InvalidValue("w", w, f"at most the {stream.steps} steps of the stream")
    if w > stream.n:
        raise InvalidValue("w", w, f"at most the {stream.n} devices, or a window has steps that nobody answers")
    return run_stream(protocol, stream, rng, ledgers=Ledgers.of_window(stream.n, epsilon=epsilon, w=w, strict=True))
