"""A unary encoding of a whole set: a bit for every item, each with its part of the budget."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Ordinal, Sets, Values
from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Floats, Ints, Reports
from hubbub.mechanisms.base import fractions
from hubbub.mechanisms.frequency.unary import PackedBits, flip_bits
from hubbub.mechanisms.sets.set_mechanism import SetMechanism
from hubbub.random.integers import log_fraction, log_upper, unpack
from hubbub.random.source import Random

_WIDTH = 32
_ALL = 1 << _WIDTH
_MOST_CHANGES = 1 << 13  # the exact ratio is a power with this exponent: seconds


@dataclass(frozen=True, kw_only=True)
class SplitUnary(PackedBits, SetMechanism):
    """Shares of the items of sets, by a unary encoding of the whole set.

    A report is d bits: 1 with probability p for an item that is held, q for any other. Two sets of at most l items can
    differ in l items that only the first holds and l that only the second holds. A report's probabilities then differ
    by (p/q)^l ((1-q)/(1-p))^l: epsilon is split in l parts. Variance of a share f: [f p(1-p) + (1-f) q(1-q)] /
    (n (p-q)^2). Bits are drawn one by one, so that errors of different items are independent.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A `Sets`; or its items, for any set of them.
    one, zero
        Of 2^32, how often the bit of an item is 1 that is held, and of any other; 0 chooses those of the smallest mean
        variance if people hold half of what they may.

    Example:
        >>> from hubbub import Ordinal, Sets
        >>> split = SplitUnary(epsilon=4.0, domain=Sets(Ordinal(6), most=2))
        >>> reports = split.randomize([{0, 2}] * 3_000 + [{2}] * 1_000, Random(seed=1))
        >>> split.estimate(split.accumulate(reports)).value.round(1).tolist()
        [0.8, -0.0, 1.0, 0.0, -0.0, 0.0]

    References
    ----------
    Ours: what SUE and OUE become where up to l bits are 1.
    """

    one: int = 0
    zero: int = 0

    @classmethod
    def best_for(cls, *, epsilon: float, domain: Sets, held: float) -> Self:
        """The mechanism with the smallest mean variance where people hold `held` items on average."""
        plain = cls(epsilon=epsilon, domain=domain)
        return cls(epsilon=epsilon, domain=domain, one=plain._best_one(held))

    def _resolve(self) -> None:
        self._resolve_sets()
        if sum(self._changes) > _MOST_CHANGES:
            raise InvalidValue("domain", self.sets.spec(), f"sets of which two differ in at most {_MOST_CHANGES} items")
        if self.one == 0:
            self._set("one", self._best_one(self.sets.most / 2))
        self._integer("one", 2, _ALL - 1)
        if self.zero == 0:
            self._set("zero", self._least_zero())
        self._integer("zero", 1, self.one - 1)

    def _best_one(self, held: float) -> int:
        """The p of the smallest mean variance, in 2^-32: tried on a grid."""
        share = held / self.size
        epsilon = min(self.epsilon, 200.0 * self.sets.most)
        best = min(range(2, 99), key=lambda percent: _error(percent / 100, share, epsilon, *self._changes))
        return best * _ALL // 100

    def _least_zero(self) -> int:
        """The smallest q, in 2^-32, that epsilon allows with p."""
        low, high = 0, self.one
        while high - low > 1:
            middle = (low + high) // 2
            if log_upper(self._ratio(middle)) <= self.epsilon:
                high = middle
            else:
                low = middle
        if high == self.one:
            raise InvalidValue("epsilon", self.epsilon, f"an epsilon that {_WIDTH}-bit probabilities can tell from 0")
        return high

    @cached_property
    def _changes(self) -> tuple[int, int]:
        """The most items that only one of two sets can hold, and how many only the other one can hold then."""
        most = self.sets.most
        return most, min(most, self.size - most)

    def _ratio(self, zero: int) -> Fraction:
        held, missing = Fraction(self.one, zero), Fraction(_ALL - zero, _ALL - self.one)
        most, rest = self._changes
        return max(held, missing) ** most * min(held, missing) ** rest

    def ratio(self) -> Fraction:
        return self._ratio(self.zero)

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.one, _ALL), Fraction(self.zero, _ALL)

    def pair_covariance(self) -> tuple[float, float]:
        return 0.0, 0.0  # bits are drawn one by one

    def _randomize(self, codes: ItemSets, rng: Random) -> dict[str, Array]:  # type: ignore[override]
        return {"bits": flip_bits(codes.padded(), self.size, _WIDTH, self.one, self.zero, rng)}

    def _counts_of_bits(self, reports: Reports, values: Values) -> list[Ints]:
        """For each report and set: bits of held items that are 1 and 0, and of others that are 1 and 0."""
        bits, people = unpack(reports.private["bits"], self.size).astype(np.int64), self.encode(values)
        held = np.zeros((len(people), self.size), dtype=np.int64)
        held[people.owners, people.items] = 1
        both, ones, sizes = bits @ held.T, bits.sum(axis=1)[:, None], held.sum(axis=1)[None, :]
        return [both, sizes - both, ones - both, self.size - sizes - ones + both]

    def prob(self, reports: Reports, values: Values) -> NDArray[np.object_]:
        p, q = self.rates
        counts = np.stack(self._counts_of_bits(reports, values), axis=-1)
        patterns, index = np.unique(counts.reshape(-1, 4), axis=0, return_inverse=True)
        chances = [p**a * (1 - p) ** b * q**c * (1 - q) ** e for a, b, c, e in patterns.tolist()]
        return fractions(chances, index.reshape(counts.shape[:2]))

    def log_prob(self, reports: Reports, values: Values) -> Floats:
        p, q = self.rates
        logs = [log_fraction(rate) for rate in (p, 1 - p, q, 1 - q)]
        return np.asarray(
            sum(log * count for log, count in zip(logs, self._counts_of_bits(reports, values), strict=True))
        )

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=Sets(Ordinal(4), most=2))
        yield cls(epsilon=2.0, domain=["a", "b", "c"])
        yield cls(epsilon=4.0, domain=Sets(Ordinal(131), most=3))


def _error(p: float, share: float, epsilon: float, most: int, rest: int) -> float:
    """The mean variance of one report's estimates, with the smallest q that epsilon allows."""

    def spent(q: float) -> float:
        held, missing = math.log(p / q), math.log((1 - q) / (1 - p))
        return max(held, missing) * most + min(held, missing) * rest

    low, high = 0.0, p
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if middle and spent(middle) <= epsilon else (middle, high)
    q = high
    return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2 if q < p else math.inf
