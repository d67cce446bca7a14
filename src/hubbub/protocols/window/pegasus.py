"""PeGaSus: perturb every step, group steps that look alike, smooth over the group."""

from __future__ import annotations

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.protocols.driver import Protocol
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.last import Last, dissimilarity

__all__ = ["pegasus"]


def pegasus(division: Division, *, beta: float = 0.2, tolerance: float = 1.0) -> Protocol:
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
    last = Last(division)
    group: list[Estimate] = []
    whole = division.total // division.w
    measure = int(whole * beta)
    while True:
        now = yield from division.ask(measure, standing=True)
        fresh = yield from division.ask(whole - measure, standing=True)
        if fresh is None:
            yield division.release(last.stand_in(division.step), published=False)
            continue
        if group and now is not None:
            error = float(np.mean(fresh.variance))
            if dissimilarity(now, last.value) > tolerance * error:
                group = []
        group.append(fresh)
        yield division.release(last.publish(_smooth(group), division.step), published=True)


def _smooth(group: list[Estimate]) -> Estimate:
    """The mean of independent estimates, each weighed by its precision."""
    weights = np.array([1 / np.maximum(one.variance, 1e-300) for one in group])
    total = weights.sum(axis=0)
    value = (weights * np.array([one.value for one in group])).sum(axis=0) / total
    first = group[-1]
    return Estimate(
        value,
        1 / total,
        sum(one.n for one in group),
        bias=first.bias if len(group) == 1 else "heuristic",
        kind=first.kind,
        labels=first.labels,
    )
