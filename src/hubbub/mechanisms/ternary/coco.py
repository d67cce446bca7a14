"""CoCo, correlated Collision: the two signs of a position share a pair of buckets, the held sign's the likelier one."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import bucket, hash32
from hubbub.core.reports import Array, Ints, Reports, Words
from hubbub.mechanisms.base import Cases
from hubbub.mechanisms.ternary.collision import (
    MOST_BUCKETS,
    BucketReports,
    BucketWeights,
    among_the_rest,
    chance,
    low_and_high,
    skipping,
)
from hubbub.mechanisms.ternary.ternary import Quantity, Rates
from hubbub.mechanisms.weights import TWO_64, search_power
from hubbub.random.integers import bounded
from hubbub.random.source import Random


class _Hashed(NamedTuple):
    """The sorted buckets of a vector's entries; the pairs of buckets that are hit, filled up with t; their number."""

    own: Ints
    pairs: Ints
    hits: Ints


@dataclass(frozen=True, kw_only=True)
class CoCo(BucketReports):
    """Means of sparse ternary vectors, in a seed and one of t buckets: less error than Collision's.

    A hash puts +1 at a position in one of t buckets, and -1 in that bucket's neighbour. The held sign's bucket has the
    probability e^eps/Omega, its neighbour 1/Omega, Omega = s e^eps + t - s; where several entries fall in one pair of
    buckets, one of them, drawn at random, decides it; the rest is shared out evenly among the other pairs. An entry is
    overruled with probability P_ow = 1 - (t^s - (t-2)^s)/(2 s t^(s-1)), Eq 7, and p_true = (1-P_ow) e^eps/Omega +
    P_ow (e^eps+1)/(2 Omega), p_reverse likewise, p_false = 1/t. Stubs fill a vector up to s entries.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length of the vectors, and how many entries of one may differ from 0.
    buckets
        How many buckets, even, at least 2 s + 2; 0 chooses the number with the smallest error of the mean.
    low, high
        Of 2^64, the shares of the two buckets of a pair that is hit; 0 chooses them.
    hash
        The name of the function that a seed selects: "product32".

    Example:
        >>> coco = CoCo(epsilon=2.0, dimension=16, sparsity=2)
        >>> reports = coco.randomize([{3: 1, 5: -1}] * 20_000, Random(seed=1))
        >>> coco.estimate(coco.accumulate(reports)).value.round(1)[[3, 5]].tolist()
        [1.0, -1.0]

    References
    ----------
    S. Wang, Li, Li et al., 2023, section 7 (Algorithms 1 and 2, Lemma 3). P_t + P_o is (e^eps+1)/Omega, not half of it.
    """

    low: int = 0
    high: int = 0

    def _resolve(self) -> None:
        self._resolve_hash()
        if self.buckets == 0:
            self._set("buckets", coco_buckets(self.epsilon, self.dimension, self.sparsity))
        self._integer("buckets", 2 * self.sparsity + 2, MOST_BUCKETS)
        if self.buckets % 2:
            raise InvalidValue("buckets", self.buckets, "an even number")
        low, high = low_and_high(self.epsilon, self.sparsity, self.buckets)
        if self.low == 0:
            self._set("low", low)
        if self.high == 0:
            self._set("high", high)
        self._integer("low", 1, TWO_64 // self.buckets)
        self._integer("high", 1, TWO_64 // self.sparsity)
        if self.high <= self.low or self.sparsity * (self.high + self.low) >= TWO_64 or self._shares[-1].least == 0:
            raise InvalidValue("high", self.high, "above low, and with it at most what leaves the other buckets some")

    @cached_property
    def _shares(self) -> tuple[BucketWeights, ...]:
        """The weights of the buckets of the other pairs, where 1, ..., s pairs are hit."""
        taken, t = self.high + self.low, self.buckets
        return tuple(BucketWeights.of(c, taken=taken, rest=t - 2 * c) for c in range(1, self.sparsity + 1))

    def ratio(self) -> Fraction:
        most = max(self.high, *(shares.most for shares in self._shares))
        return Fraction(most, self._least_weight)

    @property
    def _least_weight(self) -> int:
        return min(self.low, *(shares.least for shares in self._shares))

    @cached_property
    def rates(self) -> Rates:
        s, t = self.sparsity, self.buckets
        kept = Fraction(t**s - (t - 2) ** s, 2 * s * t ** (s - 1))  # 1 - P_ow, Eq 7
        low, high = chance(self.low), chance(self.high)
        middle = (1 - kept) * (low + high) / 2
        return Rates(kept * high + middle, Fraction(1, t), kept * low + middle)

    @property
    def words(self) -> int:
        return 3

    def _hash(self, seed: Words, symbols: Ints) -> _Hashed:
        stubs = 2 * (self.dimension + np.arange(self.sparsity))
        filled = np.where(symbols >= 0, symbols, stubs)
        own = bucket(hash32(seed[:, None], filled >> 1), self.buckets) ^ filled & 1
        own.sort(axis=1)
        pairs = own >> 1
        pairs[:, 1:][pairs[:, 1:] == pairs[:, :-1]] = self.buckets
        pairs.sort(axis=1)
        return _Hashed(own, pairs, (pairs < self.buckets).sum(axis=1))

    def _respond(self, symbols: Ints, draws: Words, rng: Random) -> dict[str, Array]:
        seed, bits = draws[:, 0], draws[:, 1]
        own, pairs, count = self._hash(seed, symbols)
        start, each, extra = (np.array(part, dtype=np.uint64)[count - 1] for part in zip(*self._shares, strict=True))
        rest = among_the_rest(bits - start, each, extra)
        elsewhere = 2 * skipping(rest >> 1, pairs) + (rest & 1)
        taken = np.uint64(self.high + self.low)
        number = np.minimum(bits // taken, (count - 1).astype(np.uint64)).astype(np.int64)
        pair = np.take_along_axis(pairs, number[:, None], axis=1)
        first, rivals = (own >> 1 < pair).sum(axis=1), (own >> 1 == pair).sum(axis=1)
        winner = first + bounded(draws[:, 2], rivals, rng)
        turned = bits % taken >= np.uint64(self.high)
        hit = np.take_along_axis(own, winner[:, None], axis=1)[:, 0] ^ turned
        return {"seed": seed, "bucket": np.where(bits < start, hit, elsewhere)}

    def _case(self, seeds: Words, buckets: Ints, symbols: Ints) -> Ints:
        """k (s+1) + a where k entries fall in the bucket's pair and a of them in the bucket; larger where none do."""
        s = self.sparsity
        extra = np.array([shares.extra for shares in self._shares], dtype=np.int64)
        own, pairs, count = self._hash(seeds, symbols)
        rivals, agreeing = (own >> 1 == buckets[:, None] >> 1).sum(axis=1), (own == buckets[:, None]).sum(axis=1)
        rank = buckets - 2 * (pairs < buckets[:, None] >> 1).sum(axis=1)
        other = (s + 1) ** 2 + 2 * (count - 1) + (rank >= extra[count - 1])
        return np.asarray(np.where(rivals > 0, rivals * (s + 1) + agreeing, other))

    def _chance(self, code: int) -> Fraction:
        rest = code - (self.sparsity + 1) ** 2
        if rest >= 0:
            shares = self._shares[rest // 2]
            return chance(shares.each if rest % 2 else shares.most)
        rivals, agreeing = divmod(code, self.sparsity + 1)
        return Fraction(agreeing * self.high + (rivals - agreeing) * self.low, rivals * TWO_64)

    def _cases(self, reports: Reports, values: Values) -> Cases:
        codes, index = np.unique(self._case_table(reports, values), return_inverse=True)
        return [self._chance(code) for code in codes.tolist()], index

    def _fold(self, reports: Reports) -> Ints:
        from hubbub.kernels.ternary import pair_support

        seeds, buckets = reports.public["seed"], reports.private["bucket"]
        return pair_support(seeds, buckets, self.buckets, self.dimension)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=3, sparsity=2)
        yield cls(epsilon=2.0, dimension=2, sparsity=1, buckets=4)
        yield cls(epsilon=1.0, dimension=40, sparsity=4)


def coco_buckets(epsilon: float, dimension: int, sparsity: int, *, of: Quantity = "mean") -> int:
    """The even number of buckets with the smallest mean squared error (Eqs 8 and 9), by trying them all."""
    power = search_power(epsilon)
    t = np.arange(2 * sparsity + 2, MOST_BUCKETS + 1, 2, dtype=np.float64)
    omega = sparsity * power + t - sparsity
    both = (power + 1) / omega
    gap = -np.expm1(sparsity * np.log1p(-2 / t)) * t / (2 * sparsity) * (power - 1) / omega
    if of == "mean":
        error = (sparsity * (both - gap**2) + (dimension - sparsity) * 2 / t) / gap**2
    else:
        missing = 2 / t * (1 - 2 / t)
        error = (sparsity * both * (1 - both) + (dimension - sparsity) * missing) / (both - 2 / t) ** 2
    return int(t[np.argmin(error)])
