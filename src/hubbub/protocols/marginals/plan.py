"""The choice of the marginals that people report on: how many, and of how many attributes each (Algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from hubbub.consistency.contingency import Attributes, check_sizes
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import units_of
from hubbub.protocols.marginals.covering import covering_design, spread_sets

THETA = 0.001
"""The assumed error of reconstruction, as in the chapter's experiments."""
MOST_MARGINALS = 1 << 12


def mean_cells(sizes: Sequence[int], s: int) -> float:
    """The mean number of cells of a marginal of s attributes, over all such marginals."""
    sums = [1] + [0] * s
    for size in sizes:
        for count in range(s, 0, -1):
            sums[count] += sums[count - 1] * size
    return sums[s] / comb(len(sizes), s)


def noise_error(n: int, sizes: Sequence[int], epsilon: float, s: int) -> float:
    """The sum of the variances of a 1-way marginal that is estimated from marginals of s attributes (Eq 6.4)."""
    cells = mean_cells(sizes, s)
    e = math.exp(min(epsilon, 300.0))
    return min(4 * e, cells - 2 + e) / (e - 1) ** 2 * cells / s * len(sizes) / n


def sampling_error(n: int, t: int) -> float:
    """An upper bound t/n on the sum of squared errors from asking one of t groups for the population (Eq 6.5)."""
    return t / n


@dataclass(frozen=True)
class MarginalPlan:
    """The marginals that people report on, and their expected errors.

    Parameters
    ----------
    marginals
        The attributes of each marginal.
    noise, sampling
        The expected sums of squared errors of a k-way marginal: k times Eq 6.4, and Eq 6.5.
    covers
        Whether every set of k attributes is in one of the marginals, so that no reconstruction is needed.
    """

    marginals: tuple[Attributes, ...]
    noise: float
    sampling: float
    covers: bool

    @property
    def t(self) -> int:
        """How many marginals there are."""
        return len(self.marginals)

    @property
    def s(self) -> int:
        """How many attributes each marginal has."""
        return len(self.marginals[0])


def plan_marginals(n: int, sizes: Sequence[int], epsilon: float, *, k: int, theta: float = THETA) -> MarginalPlan:
    """Choose the number t of marginals and their number s of attributes to minimise the larger of two errors.

    The errors are that of the noise and that of sampling, given the error theta of reconstruction. If theta n marginals
    are too few to cover all attributes, as many are chosen as cover each attribute once.

    Parameters
    ----------
    n
        How many people will report.
    sizes
        How many values each attribute has.
    epsilon
        What a report spends.
    k
        The number of attributes of the marginals that will be asked for.
    theta
        The assumed error of a reconstructed marginal.

    References
    ----------
    Dissertation, Algorithm 2, with t where it prints m, and m where it prints d.
    """
    check_integer("n", n, 1)
    known = check_sizes(sizes)
    m = len(known)
    check_integer("k", k, 1, m)
    units_of(epsilon)
    if isinstance(theta, bool) or not isinstance(theta, int | float) or not 0 < theta < math.inf:
        raise InvalidValue("theta", theta, "a number above 0")

    def noise(s: int) -> float:
        return k * noise_error(n, known, epsilon, s)

    largest = min(2, m)
    while largest < m and noise(largest + 1) <= theta:
        largest += 1
    most = max(math.floor(min(theta * n, MOST_MARGINALS)), -(-m // largest))
    smallest = largest
    while smallest > k and covering_design(m, k, smallest - 1, most) is not None:
        smallest -= 1
    if largest < k or smallest == largest:
        marginals = spread_sets(m, largest, min(most, comb(m, largest)))
        covers = k <= largest and _all_covered(marginals, m, k)
        return MarginalPlan(marginals, noise(largest), sampling_error(n, len(marginals)), covers)
    designs = [covering_design(m, k, s, most) for s in range(smallest, largest + 1)]
    chosen = min(
        (design for design in designs if design),
        key=lambda design: max(sampling_error(n, len(design)), noise(len(design[0]))),
    )
    return MarginalPlan(chosen, noise(len(chosen[0])), sampling_error(n, len(chosen)), True)


def _all_covered(marginals: Sequence[Attributes], m: int, k: int) -> bool:
    covered = {subset for marginal in marginals for subset in combinations(marginal, k)}
    return len(covered) == comb(m, k)
