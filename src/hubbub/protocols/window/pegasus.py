"""PeGaSus: perturb every step, group steps that look alike, smooth over the group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.control import Kalman
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.last import Last, dissimilarity

__all__ = ["pegasus", "pegasus_parts"]


@dataclass
class _Group:
    """The independent estimates of a group of steps as sums, each weighed by its precision."""

    weighted: NDArray[np.float64]
    weight: NDArray[np.float64]
    n: int = 0
    steps: int = 0

    def clear(self) -> None:
        self.weighted, self.weight, self.n, self.steps = 0 * self.weighted, 0 * self.weight, 0, 0

    def smooth(self, fresh: Estimate, movement: float) -> Estimate:
        """Their mean, with one more; a mean over k steps of a walk lags behind its end by (k-1)(2k-1)/(6k) steps."""
        precision = 1 / np.maximum(fresh.variance, 1e-300)
        self.weighted, self.weight = self.weighted + precision * fresh.value, self.weight + precision
        self.n, self.steps = self.n + fresh.n, self.steps + 1
        bias = fresh.bias if self.steps == 1 else "heuristic"
        lag = (self.steps - 1) * (2 * self.steps - 1) / (6 * self.steps)
        value, variance = self.weighted / self.weight, 1 / self.weight + lag * movement
        return Estimate(value, variance, self.n, bias=bias, kind=fresh.kind, labels=fresh.labels)


def pegasus_parts(division: Division, *, beta: float = 0.2) -> tuple[int, int]:
    """What grouping and estimating take.

    Example:
        >>> from hubbub.protocols.window import BudgetDivision, Frequencies
        >>> pegasus_parts(BudgetDivision(Frequencies(2), epsilon=1.0, w=20))
        (10000000000, 40000000000)
    """
    whole = division.total // division.w
    measure = int(whole * beta)
    return measure, whole - measure


def pegasus(division: Division, *, beta: float = 0.2, tolerance: float = 1.0, memory: Memory | None = None) -> Protocol:
    """Release the mean of the estimates of the current group of steps, which ends when the stream leaves it.

    PeGaSus promises event-level privacy with a trusted server; this is its form for w-event privacy without one, ours.
    Of every step's w-th, `beta` measures whether the stream is still near the group's mean (the grouper) and the rest
    estimates it (the perturber). A group ends when the distance is above `tolerance` times the error of one estimate.

    Example:
        >>> from hubbub.protocols.window import Frequencies, PopulationDivision
        >>> next(pegasus(PopulationDivision(Frequencies(2), epsilon=1.0, w=4), beta=0.5)).cohort.share
        0.125
    """
    if not 0 < beta < 1:
        raise InvalidValue("beta", beta, "a number between 0 and 1")
    memory, size = memory or Memory(), division.question.size
    last, kalman = memory.keep("last", Last(division)), memory.keep("kalman", Kalman())
    group = memory.keep("group", _Group(np.zeros(size), np.zeros(size)))
    measure, publish = pegasus_parts(division, beta=beta)
    while True:
        now = yield from division.ask(measure, standing=True)
        fresh = yield from division.ask(publish, standing=True, then=measure)
        if fresh is None:
            yield division.release(last.stand_in(division.step), published=False)
            continue
        if group.steps and now is not None:
            error = float(np.mean(fresh.variance))
            if dissimilarity(now, last.value) > tolerance * error:
                group.clear()
        kalman.advance()
        kalman.correct(fresh)
        smooth = group.smooth(fresh, kalman.movement)
        yield division.release(last.publish(smooth, division.step), published=True)
