"""PeGaSus: perturb every step, group steps with similar values, smooth over the group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.control import TINY
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.last_publication import LastPublication, dissimilarity, pooled


@dataclass
class _Group:
    """The sums of a group's independent estimates, weighted by their precision, and of the precisions."""

    weighted: NDArray[np.float64]
    weight: NDArray[np.float64]
    steps: int = 0

    def clear(self) -> None:
        self.weighted, self.weight, self.steps = 0 * self.weighted, 0 * self.weight, 0

    def smooth(self, fresh: Estimate) -> NDArray[np.float64]:
        """Add an estimate, and return the weighted mean of all."""
        precision = 1 / np.maximum(fresh.variance, TINY)
        self.weighted, self.weight = self.weighted + precision * fresh.value, self.weight + precision
        self.steps += 1
        return np.asarray(self.weighted / self.weight)


def pegasus_parts(division: Division, *, beta: float = 0.2) -> tuple[int, int]:
    """The parts that the grouper and the perturber take."""
    step_parts = division.total // division.w
    measure = int(step_parts * beta)
    return measure, step_parts - measure


def pegasus(division: Division, *, beta: float = 0.2, tolerance: float = 1.0, memory: Memory | None = None) -> Protocol:
    """Release the mean of the estimates of the current group of steps, which ends when the stream moves away from it.

    PeGaSus promises event-level privacy with a trusted server; this form, with w-event privacy and without a trusted
    server, is ours. Of the w-th of every step, `beta` measures whether the stream is still near the group's mean (the
    grouper), and the rest estimates the values (the perturber). A group ends when the distance is above `tolerance`
    times the error of one estimate.
    """
    if not 0 < beta < 1:
        raise InvalidValue("beta", beta, "a number between 0 and 1")
    memory, size = memory or Memory(), division.question.size
    last = memory.keep("last", LastPublication(division))
    group = memory.keep("group", _Group(np.zeros(size), np.zeros(size)))
    measure, publish = pegasus_parts(division, beta=beta)
    while True:
        measured = yield from division.ask(measure, standing=True)
        fresh = yield from division.ask(publish, standing=True, then=measure)
        if fresh is None:
            yield last.release_value(last.value, measured, published=False)
            continue
        if group.steps and measured is not None:
            error = float(np.mean(fresh.variance))
            if dissimilarity(measured, last.value) > tolerance * error:
                group.clear()
        last.publish(group.smooth(fresh))
        own = fresh if measured is None else pooled([measured, fresh])
        yield last.release_value(last.value, own, published=True)
