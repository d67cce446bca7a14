"""How far reconstruction is off, measured: each group's own marginal beside what the other groups make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.consistency.contingency import Attributes, check_sizes
from hubbub.consistency.normalise import norm
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.protocols.marginals.synopsis import Synopsis


@dataclass(frozen=True)
class ReconstructionError:
    """The sum of squared errors of a reconstructed marginal, on average over those that were left out.

    Parameters
    ----------
    squared
        The mean, less the noise and sampling of the left-out marginals themselves: unbiased, and by chance below 0. It
        is of marginals with as many attributes as were reported on; larger ones may be further off.
    stderr
        How far the mean may be off, from how the marginals differ; infinite where there is but one.
    marginals
        How many were left out.
    """

    squared: float
    stderr: float
    marginals: int


def measured_reconstruction(
    estimates: Mapping[Attributes, Estimate], sizes: Sequence[int], *, most: int = 16
) -> ReconstructionError:
    """Leave out one marginal at a time, make it of the others, and compare it with its own unbiased estimate.

    The groups of people are disjoint, so that the two are independent: the expected squared difference is the squared
    error of the reconstruction plus the variance of the left-out estimate, which is known.

    Parameters
    ----------
    estimates
        Unbiased estimates by attributes, as `CALM.unbiased` gives.
    sizes
        How many values each attribute has.
    most
        How many marginals are left out, at most.

    Example:
        >>> from hubbub import Random
        >>> from hubbub.protocols.marginals.calm import CALM
        >>> calm = CALM(2.0, (2, 2, 2), ((0, 1), (0, 2), (1, 2)))
        >>> same = np.repeat(np.arange(30_000)[:, None] % 2, 3, axis=1)
        >>> estimates = calm.unbiased(calm.accumulate(calm.randomize(same, Random(seed=1))))
        >>> error = measured_reconstruction(estimates, (2, 2, 2))  # pairs that are equal pass for independent
        >>> error.marginals, 0.2 < error.squared < 0.3
        (3, True)
    """
    known = check_sizes(sizes)
    differences: list[float] = []
    for view, estimate in estimates.items():
        others = {other: own for other, own in estimates.items() if other != view}
        held = set().union(*others) if others else set()
        if len(differences) == most or not set(view) <= held or any(set(view) <= set(other) for other in others):
            continue
        own = norm(estimate)
        made = Synopsis(others, known).table(view).ravel()
        differences.append(float(((made - own.value) ** 2).sum() - own.variance.sum()))
    if not differences:
        raise InvalidValue(
            "estimates", sorted(estimates), "a marginal whose attributes others have, though none has all"
        )
    number = len(differences)
    spread = float(np.std(differences, ddof=1)) / number**0.5 if number > 1 else np.inf
    return ReconstructionError(float(np.mean(differences)), spread, number)
