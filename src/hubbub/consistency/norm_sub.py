"""Norm-Sub: the nearest shares (Euclidean) that are at least 0 and sum to 1."""

from __future__ import annotations

from hubbub.consistency.shares import adjusted, shares_of
from hubbub.consistency.simplex import project_simplex
from hubbub.core.estimate import Estimate


def norm_sub(estimate: Estimate) -> Estimate:
    """Add the same number to each estimate, and set negative results to 0, so that the results sum to 1.

    f_i = max(f~_i + delta, 0). This is constrained least squares: the Euclidean projection onto the simplex
    (section 8.1.3). The variance stays that of the estimate before: as the truth lies on the simplex, the expected
    squared distance to it is at most the sum of the variances.

    Example:
        >>> norm_sub(Estimate(value=[0.75, 0.5, -0.25], variance=[0.01] * 3, n=100)).value.tolist()
        [0.625, 0.375, 0.0]

    References
    ----------
    Dissertation, sections 8.1.2 and 8.1.3.
    """
    return adjusted(estimate, project_simplex(shares_of(estimate)))
