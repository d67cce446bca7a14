"""The choice of the marginals that people report on: how many, and of how many attributes each (Algorithm 2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.marginals import Attributes, check_sizes
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import units_of
from hubbub.random.source import Random

MOST_SUBSETS = 1 << 18
"""Designs that have to cover more subsets than this are not searched for."""
_ATTEMPTS = 8


def fewest_sets(attributes: int, covered: int, size: int) -> int:
    """A lower bound on the number of sets of a design (Schoenheim's bound)."""
    bound = 1
    for less in reversed(range(covered)):
        bound = -(-(attributes - less) * bound // (size - less))
    return bound


@lru_cache(maxsize=256)
def covering_design(attributes: int, covered: int, size: int, most: int) -> tuple[Attributes, ...] | None:
    """Sets of `size` attributes such that any `covered` attributes are in one; None if `most` sets do not suffice.

    A greedy search: to a set the attribute is added that most raises the expected number of newly covered subsets, if
    the rest of the set were drawn at random. Of several attempts the smallest design is returned, which need not be
    optimal.

    `covered`: the number of attributes of which any choice must be together in one set.
    """
    check_integer("attributes", attributes, 1)
    check_integer("covered", covered, 1, attributes)
    check_integer("size", size, covered, attributes)
    if fewest_sets(attributes, covered, size) > most or comb(attributes, covered) > MOST_SUBSETS:
        return None
    best: tuple[Attributes, ...] | None = None
    for attempt in range(1 if size == covered else _ATTEMPTS):
        design = _greedy_design(attributes, covered, size, most if best is None else len(best) - 1, attempt)
        best = design or best
    return best


@lru_cache(maxsize=256)
def spread_sets(attributes: int, size: int, number: int) -> tuple[Attributes, ...]:
    """A number of different sets of `size` attributes: they cover first every attribute, then every pair, and so on."""
    check_integer("size", size, 1, attributes)
    check_integer("number", number, 1, comb(attributes, size))
    sets: list[Attributes] = []
    for covered in range(1, size + 1):
        if comb(attributes, covered) > MOST_SUBSETS:
            break
        _grow(sets, attributes, covered, size, number, np.arange(attributes))
    rng = Random(seed="sets of attributes")  # a fixed seed: the design is always the same
    while len(sets) < number:
        drawn = tuple(sorted(rng.permutation(attributes)[:size].tolist()))
        if drawn not in sets:
            sets.append(drawn)
    return tuple(sets[:number])


def _greedy_design(attributes: int, covered: int, size: int, most: int, attempt: int) -> tuple[Attributes, ...] | None:
    order = np.arange(attributes)
    if attempt:
        order = Random(seed=attempt).permutation(attributes)
    sets: list[Attributes] = []
    complete = _grow(sets, attributes, covered, size, most, order)
    return tuple(sets) if complete else None


def _grow(
    sets: list[Attributes], attributes: int, covered: int, size: int, most: int, order: NDArray[np.int64]
) -> bool:
    """Add sets until every subset of `covered` attributes is in one, or there are `most`; return whether all are."""
    left = _incidence(attributes, covered)
    for chosen in sets:
        left = left[left[:, list(chosen)].sum(axis=1) < covered]
    uses = np.bincount(np.array(sets, dtype=np.int64).ravel(), minlength=attributes)
    while left.size and len(sets) < most:
        new_set = _next_set(left, covered, size, uses, order)
        uses[new_set] += 1
        sets.append(tuple(sorted(new_set)))
        left = left[left[:, new_set].sum(axis=1) < covered]
    return not left.size


def _next_set(
    left: NDArray[np.int32], covered: int, size: int, uses: NDArray[np.int64], order: NDArray[np.int64]
) -> list[int]:
    attributes = left.shape[1]
    rank = np.argsort(order)
    chosen: list[int] = []
    for taken in range(size):
        missing = covered - left[:, chosen].sum(axis=1)
        rest, room = attributes - taken - 1, size - taken - 1
        chance = np.array([comb(rest - lack, room - lack) / comb(rest, room) if lack <= room else 0.0 for lack in
                           range(covered + 1)])  # fmt: skip
        gain = np.where(missing > 0, chance[np.maximum(missing - 1, 0)] - chance[missing], 0.0)
        score = np.round(gain @ left, 9)
        score[chosen] = -1.0
        chosen.append(int(np.lexsort((rank, uses, -score))[0]))
    return chosen


@lru_cache(maxsize=8)
def _incidence(attributes: int, covered: int) -> NDArray[np.int32]:
    """The incidence matrix: a row for each subset, with 1 where an attribute (column) is in it."""
    subsets = np.array(list(combinations(range(attributes), covered)), dtype=np.int64)
    rows = np.zeros((len(subsets), attributes), dtype=np.int32)
    rows[np.arange(len(subsets))[:, None], subsets] = 1
    return rows


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

    `noise`, `sampling`: the expected sums of squared errors of a k-way marginal: k times Eq 6.4, and Eq 6.5. `covers`:
    whether every set of k attributes is in one of the marginals, so that no reconstruction is needed.
    """

    marginals: tuple[Attributes, ...]
    noise: float
    sampling: float
    covers: bool

    @property
    def t(self) -> int:
        return len(self.marginals)

    @property
    def s(self) -> int:
        """How many attributes each marginal has."""
        return len(self.marginals[0])


def plan_marginals(
    n: int, sizes: Sequence[int], epsilon: float, *, k: int, theta: float = THETA, most: int = MOST_MARGINALS
) -> MarginalPlan:
    """Choose the number t of marginals and their number s of attributes to minimise the larger of two errors.

    The errors are that of the noise and that of sampling, given the error theta of reconstruction. If theta n marginals
    are too few to cover all attributes, as many are chosen as cover each attribute once.

    `k`: the number of attributes of the marginals that will be asked for. `theta`: the assumed error of a reconstructed
    marginal. `most`: the most marginals to choose, unless so few do not have all attributes.

    References
    ----------
    T. Wang, 2021, Algorithm 2, with t where it prints m, and m where it prints d.
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
    most = max(math.floor(min(theta * n, most)), -(-m // largest))
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


def marginals_error(n: int, sizes: Sequence[int], epsilon: float, views: Sequence[Attributes]) -> float:
    """The mean, over the attributes, of Eq 6.4 for the marginals given: the sum of variances of a 1-way marginal.

    For marginals of one size, in which each attribute is equally often, it is Eq 6.4.
    """
    e = math.exp(min(epsilon, 300.0))
    precise = [0.0] * len(sizes)  # 1 over the variance, from the marginals that have the attribute
    for view in views:
        cells = math.prod(sizes[column] for column in view)
        for column in view:
            precise[column] += n / len(views) * (e - 1) ** 2 / (min(4 * e, cells - 2 + e) * cells)
    return sum(1 / weight for weight in precise if weight) / max(sum(weight > 0 for weight in precise), 1)


def plan_named(
    n: int,
    sizes: Sequence[int],
    epsilon: float,
    named: Sequence[Attributes],
    *,
    theta: float = THETA,
    most: int = MOST_MARGINALS,
) -> MarginalPlan:
    """Choose the marginals to report on where only some are asked for.

    These are either the named marginals themselves (without those that are in another), or what Algorithm 2 chooses for
    as many attributes as the largest of them has: whichever of the two has the smaller error, if both have all named
    ones. Named ones of three or more attributes are not reported on if their noise exceeds theta.

    `n`, `sizes`, `epsilon`, `theta`, `most`: as of `plan_marginals`.
    """
    largest = sorted(view for view in set(named) if not any(set(view) < set(other) for other in named))
    k = max(map(len, largest))
    general = plan_marginals(n, sizes, epsilon, k=k, theta=theta, most=most)
    noise = k * marginals_error(n, sizes, epsilon, largest)
    if (k > 2 and noise > theta) or len(largest) > most:
        return general
    own = MarginalPlan(tuple(largest), noise, sampling_error(n, len(largest)), True)
    if not all(any(set(view) <= set(other) for other in general.marginals) for view in largest):
        return own
    return min(own, general, key=lambda plan: max(plan.noise, plan.sampling))
