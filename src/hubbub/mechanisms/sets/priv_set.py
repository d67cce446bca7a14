"""PrivSet: a report is m elements, more often m elements that include enough of the sender's own.

The arithmetic of PrivSet: how many elements a random subset shares with a set, and the best size and threshold.

A subset of m of D elements meets a set of s of them in J elements, hypergeometric. With H(j) = P(J = j), weights
w(j) = 1 where j >= t and f = e^-eps elsewhere, and Z = E[w(J)], an element that is held is in a report with probability
E[J w(J)] / (s Z), any other with E[(m-J) w(J)] / ((D-s) Z).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from math import lgamma
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Ordinal, Sets, Values
from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Bools, Columns, Floats, Ints, Reports, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.sets.set_mechanism import SetMechanism
from hubbub.mechanisms.ternary.selection import select
from hubbub.mechanisms.weights import resolve_two_weights, search_power
from hubbub.random.integers import ExactChoice, pack, unpack
from hubbub.random.source import Random

_SIZES = 1 << 10  # sizes m looked at together: all of them, or a grid that is narrowed down
_EQUAL = 1e-9  # errors that differ by less are ties, on any machine: the smallest m and t is taken


class OverlapRule(NamedTuple):
    """A size m, a threshold t, and the mean variance of one report's estimates with them."""

    m: int
    t: int
    error: float


@lru_cache(maxsize=1024)
def best_overlap(epsilon: float, items: int, held: int, share: float) -> OverlapRule:
    """The size and the threshold of the smallest mean variance where an item is held by this share of the people."""
    last = items + held - 1
    sizes = np.unique(np.round(np.linspace(1, last, min(last, _SIZES)))).astype(np.int64)
    sizes = np.union1d(sizes, np.arange(1, min(last, _SIZES) + 1))
    rule = _best_of(epsilon, items, held, share, sizes)
    if last > _SIZES:  # the neighbours that the grid left out
        around = last // _SIZES + 1
        near = np.arange(max(1, rule.m - around), min(last, rule.m + around) + 1)
        rule = min(rule, _best_of(epsilon, items, held, share, near), key=lambda candidate: candidate.error)
    return rule


def _best_of(epsilon: float, items: int, held: int, share: float, sizes: Ints) -> OverlapRule:
    errors = _errors(epsilon, items, held, share, sizes)
    close = errors <= errors.min() * (1 + _EQUAL)
    row, column = (int(place[0]) for place in np.nonzero(close))
    return OverlapRule(int(sizes[row]), column + 1, float(errors[row, column]))


def _errors(epsilon: float, items: int, held: int, share: float, sizes: Ints) -> Floats:
    """For each size (row) and threshold 1, 2, ... (column)."""
    power, elements = search_power(epsilon), items + held
    overlap = np.arange(held + 1)
    size = sizes[:, None]
    possible = (overlap <= size) & (size - overlap <= items)
    inside = np.clip(size - overlap, 0, items)
    logs = _log_choose(held, overlap) + _log_choose(items, inside) - _log_choose(elements, size)
    chance = np.where(possible, np.exp(logs), 0.0)

    def weighed(number: Floats) -> Floats:
        whole = chance * number
        above = np.cumsum(whole[:, ::-1], axis=1)[:, ::-1][:, 1:]  # where at least 1, 2, ... are met
        return np.asarray(whole.sum(axis=1, keepdims=True) + (power - 1) * above)

    total = weighed(np.ones_like(chance))
    p = weighed(np.broadcast_to(overlap, chance.shape).astype(np.float64)) / held / total
    q = weighed((size - overlap).astype(np.float64)) / items / total
    with np.errstate(divide="ignore", invalid="ignore"):
        error = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2
    rule = (overlap[1:] <= size) & (overlap[1:] > size - items)  # some subsets meet this number, and some fewer
    return np.where(rule & (p > q) & np.isfinite(error), error, np.inf)


def _log_choose(n: int, k: Ints) -> Floats:
    ways = [lgamma(n + 1) - lgamma(number + 1) - lgamma(n - number + 1) for number in k.ravel().tolist()]
    return np.array(ways).reshape(k.shape)


MOST_HELD = 1 << 12
MOST_ELEMENTS = 1 << 20
"""The largest domain: a device draws a number for every element, 4 MiB in all."""
_ENUMERABLE = 5_000
_CHUNK = 1 << 21  # 32-bit words drawn together


@dataclass(frozen=True, kw_only=True)
class PrivSet(SetMechanism):
    """Shares of the items of sets, with the smallest error of all mechanisms here.

    A set is filled up with dummies to s elements, the most that a set may hold. A report is m of the D = d + s
    elements; one that meets the set in at least t of them has the weight 1, any other e^-eps. The sum of the weights is
    the same for every set, so that no probability differs by more than e^eps. Variance of a share f, with the exact
    chances p and q that an item is in a report whose sender holds it, or does not: [f p(1-p) + (1-f) q(1-q)] /
    (n (p-q)^2).

    With m = 1 it is padding and sampling over the amplified GRR. t = 1 is as published; a larger t is ours, and better
    where epsilon is large.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A `Sets`; or its items, for any set of them.
    m, t
        How many elements a report has, and in how many of them a preferred one meets the set; 0 chooses those of the
        smallest mean variance if people hold half of what they may (give both, or none).
    bits, least
        A report that falls short has weight `least` where others have 2^bits, at least e^-eps of it; 0 chooses them.

    Example:
        >>> from hubbub import Ordinal, Sets
        >>> priv = PrivSet(epsilon=2.0, domain=Sets(Ordinal(60), most=2))
        >>> reports = priv.randomize([{0, 2}] * 15_000 + [{2}] * 5_000, Random(seed=1))
        >>> priv.estimate(priv.accumulate(reports)).value.round(1)[:4].tolist(), priv.m, priv.t
        ([0.8, -0.0, 1.0, 0.0], 3, 1)

    References
    ----------
    S. Wang et al., 2018 (t = 1).
    """

    m: int = 0
    t: int = 0
    bits: int = 0
    least: int = 0
    server_work: ClassVar[str] = "m increments, or the bits of D/8 bytes added up"

    @classmethod
    def best_for(cls, *, epsilon: float, domain: Sets, held: float) -> Self:
        """The mechanism with the m and t of the smallest mean variance where people hold `held` items on average."""
        plain = cls(epsilon=epsilon, domain=domain, m=1, t=1)
        m, t, _ = plain._best(held)
        return cls(epsilon=epsilon, domain=domain, m=m, t=t)

    def _best(self, held: float) -> OverlapRule:

        return best_overlap(self.epsilon, self.size, self.held, held / self.size)

    def _resolve(self) -> None:
        self._resolve_sets()
        if self.held > MOST_HELD:
            raise InvalidValue("domain", self.held, f"sets of at most {MOST_HELD} items")
        if self.elements > MOST_ELEMENTS:
            raise InvalidValue(
                "domain", self.size, f"at most {MOST_ELEMENTS - self.held:,} items: PSFO needs no more work"
            )
        if self.m == 0 and self.t == 0:
            m, t, _ = self._best(self.held / 2)
            self._set("m", m)
            self._set("t", t)
        self._integer("m", 1, self.elements - 1)
        self._integer("t", max(1, self.m - self.size + 1), min(self.m, self.held))
        resolve_two_weights(self, self.epsilon)

    @property
    def held(self) -> int:
        """How many elements every filled set has."""
        return self.sets.most

    @property
    def elements(self) -> int:
        """How many elements there are, dummies included."""
        return self.size + self.held

    def _weight(self, overlap: int) -> int:
        return 1 << self.bits if overlap >= self.t else self.least

    @property
    def _least_overlap(self) -> int:
        return max(0, self.m - self.size)

    @cached_property
    def overlap_choice(self) -> ExactChoice:
        """The exact choice of how many elements of the set a report has, from `_least_overlap` on."""
        s, m, others = self.held, self.m, self.elements - self.m

        # Of all reports, C(s,j) C(D-s,m-j) have j of the s elements: up to a common factor, products of s factors.
        def reports(overlap: int) -> int:
            return math.comb(s, overlap) * math.perm(m, overlap) * math.perm(others, s - overlap)

        return ExactChoice(
            [reports(shared) * self._weight(shared) for shared in range(self._least_overlap, min(s, m) + 1)]
        )

    def ratio(self) -> Fraction:
        return Fraction(1 << self.bits, self.least)

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        weights, total = self.overlap_choice.weights, self.overlap_choice.total
        overlap = sum(number * weight for number, weight in enumerate(weights, self._least_overlap))
        return Fraction(overlap, self.held * total), Fraction(self.m * total - overlap, self.size * total)

    def _supported(self, values: int) -> tuple[int, int]:
        return max(0, self.m - (self.elements - values)), min(self.m, values)

    # -- the sampler ------------------------------------------------------------------------------------------

    @property
    def _as_list(self) -> bool:
        return self.m * int(unsigned(self.elements)[1]) <= -(-self.elements // 8)

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        if self._as_list:
            return (ColumnSpec("private", "element", unsigned(self.elements), (self.m,), below=self.elements),)
        return (ColumnSpec.packed("bits", self.elements),)

    def server_operations(self, n: int) -> float:
        return float(self.m if self._as_list else -(-self.elements // 8))

    def _pack(self, chosen: Bools) -> dict[str, Array]:
        if self._as_list:
            return {"element": np.nonzero(chosen)[1].reshape(len(chosen), self.m).astype(unsigned(self.elements))}
        return {"bits": pack(chosen)}

    def _filled(self, people: ItemSets) -> NDArray[np.int8]:
        """Rows over all elements: 1 for the items of a set and for as many dummies as it lacks items."""
        rows = np.zeros((len(people), self.elements), dtype=np.int8)
        rows[people.owners, people.items] = 1
        rows[:, self.size :] = np.arange(self.held) < (self.held - people.sizes)[:, None]
        return rows

    def _randomize(self, codes: ItemSets, rng: Random) -> dict[str, Array]:  # type: ignore[override]
        words = 1 + -(-self.elements // 2)
        step = max(1, _CHUNK // self.elements)
        parts = []
        for start in range(0, max(len(codes), 1), step):
            people = codes[start : start + step]
            draws = rng.uint64(len(people), words)
            overlap = (self._least_overlap + self.overlap_choice.place(draws[:, 0], rng)).astype(np.int32)
            counters = np.zeros((len(people), 5), dtype=np.int32)
            counters[:, 0], counters[:, 2], counters[:, 3], counters[:, 4] = (
                overlap,
                self.m - overlap,
                self.held,
                self.size,
            )
            per_element = np.ascontiguousarray(draws[:, 1:]).view("<u4")[:, : self.elements]
            signs = select(self._filled(people), per_element, counters, rng)
            parts.append(self._pack(signs != 0))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    # -- probabilities and counts -----------------------------------------------------------------------------

    def rows(self, reports: Reports) -> Bools:
        if not self._as_list:
            return unpack(reports.private["bits"], self.elements).astype(bool)
        rows = np.zeros((len(reports), self.elements), dtype=bool)
        np.put_along_axis(rows, reports.private["element"].astype(np.int64), True, axis=1)
        return rows

    def check(self, reports: Reports) -> None:
        super().check(reports)
        if self._as_list:
            if (np.diff(reports.private["element"].astype(np.int64), axis=1) <= 0).any():
                raise InvalidValue("element", "elements out of order or twice", f"{self.m} elements in order")
        elif (np.bitwise_count(reports.private["bits"]).sum(axis=1, dtype=np.int64) != self.m).any():
            raise InvalidValue("bits", "a report of another size", f"{self.m} of {self.elements} elements")

    def _cases(self, reports: Reports, values: Values) -> Cases:
        overlap = self.rows(reports).astype(np.int64) @ self._filled(self.encode(values)).T.astype(np.int64)
        scale = Fraction(math.perm(self.elements, self.held), math.comb(self.elements, self.m))
        unit = scale / self.overlap_choice.total
        return [self.least * unit, (1 << self.bits) * unit], (overlap >= self.t).astype(np.int64)

    def outputs(self, public: Columns | None = None) -> Reports | None:
        if math.comb(self.elements, self.m) > _ENUMERABLE:
            return None
        rows = np.zeros((math.comb(self.elements, self.m), self.elements), dtype=bool)
        np.put_along_axis(rows, np.array(list(combinations(range(self.elements), self.m))), True, axis=1)
        return self._with_public(public, self._pack(rows))

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        if not self._as_list:
            from hubbub.kernels.estimators import column_sums

            return column_sums(reports.private["bits"], weights)[: self.elements][candidates]
        dense = np.zeros(self.elements, dtype=np.int64)
        elements = reports.private["element"]
        if weights is None:
            dense += np.bincount(elements.ravel(), minlength=self.elements)
        else:
            np.add.at(dense, elements, weights[:, None])
        return dense[candidates]

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=Sets(Ordinal(4), most=2))
        yield cls(epsilon=3.0, domain=Sets(Ordinal(5), most=3), m=3, t=2)
        yield cls(epsilon=1.0, domain=Sets(Ordinal(131), most=3))
