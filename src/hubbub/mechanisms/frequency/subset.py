"""Subset selection: a report is a set of k values, more often one that holds the true value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Bools, Columns, Ints, Reports, Words
from hubbub.mechanisms.base import Cases
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.unary import PackedBits
from hubbub.mechanisms.weights import TWO_64, Blanket
from hubbub.random.integers import exp_floor, pack, unpack
from hubbub.random.source import Random

_ENUMERABLE = 5_000


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(PackedBits, FrequencyOracle):
    """Shares of a domain of moderate size, with the smallest variance known at every size.

    A report is a set of `subset` values, which holds the true one with probability p = k e^eps/(k e^eps + d - k),
    and is otherwise uniform. A value that is not held is in it with probability q = (p (k-1) + (1-p) k)/(d-1).

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    subset, include
        The size k of the set, near d/(e^eps + 1), and of 2^64 the share of sets that hold the truth; 0 chooses them.

    Example:
        >>> oracle = SubsetSelection(epsilon=1.0, domain=10)
        >>> reports = oracle.randomize([3] * 6000 + [4] * 4000, Random(seed=1))
        >>> oracle.estimate(oracle.accumulate(reports)).top(2).tolist(), oracle.subset
        ([3, 4], 3)

    References
    ----------
    Ye and Barg, 2018.
    """

    subset: int = 0
    include: int = 0

    def _resolve(self) -> None:
        self._resolve_domain()
        power = exp_floor(self.epsilon)
        if self.subset == 0:
            self._set("subset", min(max(1, round(self.size / (power + 1))), self.size - 1))
        self._integer("subset", 1, self.size - 1)
        k = self.subset
        if self.include == 0:
            self._set("include", min(math.floor(TWO_64 * k * power / (k * power + self.size - k)), TWO_64 - 1))
        self._integer("include", 1, TWO_64 - 1)
        p, q = self.rates
        if p <= q:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 64-bit probabilities can tell from 0")

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        p, k = Fraction(self.include, TWO_64), self.subset
        return p, (p * (k - 1) + (1 - p) * k) / (self.size - 1)

    @cached_property
    def _set_chances(self) -> tuple[Fraction, Fraction]:
        """The probability of one set that does not hold the truth, and of one that does."""
        p, d, k = self.rates[0], self.size, self.subset
        return (1 - p) / math.comb(d - 1, k), p / math.comb(d - 1, k - 1)

    def ratio(self) -> Fraction:
        p, d, k = self.rates[0], self.size, self.subset
        gain = p / (1 - p) * Fraction(d - k, k)  # the ratio of a set that holds the truth to one that does not
        return max(gain, 1 / gain)

    def blanket(self) -> Blanket:
        d, k = self.size, self.subset
        return Blanket(math.comb(d, k) * self._set_chances[0], self.ratio(), both=Fraction(k * (k - 1), d * (d - 1)))

    def _supported(self, values: int) -> tuple[int, int]:
        return max(0, self.subset - (self.size - values)), min(self.subset, values)

    def pair_covariance(self) -> tuple[float, float]:
        d, k = self.size, self.subset
        p, q = (float(rate) for rate in self.rates)
        both = (p * (k - 1) * (k - 2) + (1 - p) * k * (k - 1)) / ((d - 1) * (d - 2)) if d > 2 else 0.0
        return p * (k - 1) / (d - 1) - p * q, both - q * q

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        packed = np.empty((codes.size, -(-self.size // 8)), dtype=np.uint8)
        step = max(1, (1 << 18) // self.size)
        for start in range(0, codes.size, step):
            own = codes[start : start + step]
            draws = rng.uint64(own.size, self.size + 1)
            packed[start : start + step] = pack(
                self._sets(own, draws[:, 0] < np.uint64(self.include), draws[:, 1:], rng)
            )
        return {"bits": packed}

    def _sets(self, codes: Ints, held: Bools, draws: Words, rng: Random) -> Bools:
        """The k smallest of random keys; the true value's key comes first where it is to be held, else last."""
        k, rows = self.subset, np.arange(codes.size)
        keys = draws >> np.uint64(1)
        keys[rows, codes] = np.where(held, 0, 1 << 63)
        ordered = np.partition(keys, (k - 1, k), axis=1)
        chosen = keys <= ordered[:, k - 1 : k]
        tied = np.flatnonzero(ordered[:, k - 1] == ordered[:, k])  # more than k would be chosen: draw these keys again
        if tied.size:
            chosen[tied] = self._sets(codes[tied], held[tied], rng.uint64(tied.size, self.size), rng)
        return chosen

    def check(self, reports: Reports) -> None:
        super().check(reports)
        sizes = np.bitwise_count(reports.private["bits"]).sum(axis=1)
        if (sizes != self.subset).any():
            raise InvalidValue("bits", "a set of another size", f"sets of {self.subset} of {self.size} values")

    def _cases(self, reports: Reports, values: Values) -> Cases:
        bits = unpack(reports.private["bits"], self.size)
        return self._set_chances, bits[:, self.encode(values)].astype(np.int64)

    def outputs(self, public: Columns | None = None) -> Reports | None:
        if self.size > _ENUMERABLE or math.comb(self.size, self.subset) > _ENUMERABLE:
            return None
        sets = np.array(list(combinations(range(self.size), self.subset)))
        bits = np.zeros((len(sets), self.size), dtype=bool)
        np.put_along_axis(bits, sets, True, axis=1)
        return self._with_public(public, {"bits": pack(bits)})

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=2)
        yield cls(epsilon=1.0, domain=["a", "b", "c", "d", "e", "f", "g", "h"])
        yield cls(epsilon=1.0, domain=131)
