"""The measured error of reconstruction: each reported marginal is compared with its reconstruction from the others."""

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
    """The sum of squared errors of a reconstructed marginal, averaged over the marginals that were left out.

    Parameters
    ----------
    squared
        The mean, without the noise and sampling of the left-out marginals themselves: unbiased, and so sometimes below
        0. It is for marginals with as many attributes as people reported on; larger marginals may have larger errors.
    stderr
        The standard error of the mean, from how the marginals differ; infinite for a single marginal.
    marginals
        How many marginals were left out.
    """

    squared: float
    stderr: float
    marginals: int


def measured_reconstruction(
    estimates: Mapping[Attributes, Estimate], sizes: Sequence[int], *, most: int = 16
) -> ReconstructionError:
    """Leave out one marginal at a time, reconstruct it from the others, and compare it with its own unbiased estimate.

    The groups of people are disjoint, so that the two are independent: the expected squared difference is the squared
    error of the reconstruction plus the known variance of the left-out estimate.

    Parameters
    ----------
    estimates
        Unbiased estimates by attributes, as `CALM.unbiased` gives.
    sizes
        How many values each attribute has.
    most
        The most marginals that are left out.
    """
    known = check_sizes(sizes)
    differences: list[float] = []
    for view, estimate in estimates.items():
        others = {other: unbiased for other, unbiased in estimates.items() if other != view}
        covered = set().union(*others) if others else set()
        if len(differences) == most or not set(view) <= covered or any(set(view) <= set(other) for other in others):
            continue
        direct = norm(estimate)
        reconstructed = Synopsis(others, known).table(view).ravel()
        differences.append(float(((reconstructed - direct.value) ** 2).sum() - direct.variance.sum()))
    if not differences:
        raise InvalidValue(
            "estimates", sorted(estimates), "a marginal whose attributes are in other marginals, but not in one of them"
        )
    number = len(differences)
    spread = float(np.std(differences, ddof=1)) / number**0.5 if number > 1 else np.inf
    return ReconstructionError(float(np.mean(differences)), spread, number)
