"""Collision: a report is a bucket, more often one that an entry of the vector hashes to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import HASH, bucket, hash32
from hubbub.core.reports import Array, Columns, Ints, Reports, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.ternary.ternary import Quantity, Rates, TernaryMechanism
from hubbub.mechanisms.weights import TWO_64, Blanket, search_power
from hubbub.random.integers import ceil_div, exp_floor
from hubbub.random.source import Random


class BucketWeights(NamedTuple):
    """The weights of the buckets that are not hit, of 2^64: `each`, and one more for the first `extra` of them."""

    start: int
    each: int
    extra: int

    @staticmethod
    def of(count: int, *, taken: int, rest: int) -> BucketWeights:
        """The weights of `rest` buckets, after `count` hits took `taken` each."""
        start = count * taken
        return BucketWeights(start, *divmod(TWO_64 - start, rest))

    @property
    def least(self) -> int:
        """The smallest weight."""
        return self.each

    @property
    def most(self) -> int:
        """The largest weight."""
        return self.each + (self.extra > 0)


def low_and_high(epsilon: float, sparsity: int, buckets: int) -> tuple[int, int]:
    """Of 2^64, the share 1/Omega rounded up and the share e^eps/Omega rounded down, Omega = s e^eps + t - s.

    s high and t - s low ones never exceed 2^64, and their ratio never e^eps.
    """
    low = ceil_div(TWO_64, sparsity * exp_floor(epsilon) + buckets - sparsity)
    return low, (TWO_64 - (buckets - sparsity) * low) // sparsity


def among_the_rest(offset: Words, each: Words, extra: Words) -> Ints:
    """The number of the remaining bucket that an offset into their weights falls in."""
    front = extra * (each + np.uint64(1))
    with np.errstate(over="ignore"):
        behind = extra + (offset - front) // each  # wraps in front, where it is not used
    return np.where(offset < front, offset // (each + np.uint64(1)), behind).astype(np.int64)


def skipping(index: Ints, taken: Ints) -> Ints:
    """The index-th bucket that is not taken; each row of `taken` is sorted, filled up with large numbers."""
    for column in taken.T:
        index = index + (index >= column)
    return index


def chance(weight: int) -> Fraction:
    """A share of 2^64 as an exact probability."""
    return Fraction(weight, TWO_64)


MOST_BUCKETS = 1 << 16
_BLOCK = 1 << 18  # pairs of a report and a value looked at together


@dataclass(frozen=True, kw_only=True)
class BucketReports(TernaryMechanism):
    """A report is a random seed, which selects a hash function, and one of `buckets` buckets.

    The buckets that the vector's entries hash to are more likely than the others. So the device must know the whole
    vector before it reports.
    """

    whole_only: ClassVar[bool] = True
    key_value: ClassVar[Literal["no", "named", "chosen"]] = "named"
    buckets: int = 0
    hash: str = HASH

    @property
    @abstractmethod
    def _least_weight(self) -> int:
        """The smallest weight, of 2^64, that a bucket has under any vector."""

    @abstractmethod
    def _case(self, seeds: Words, buckets: Ints, symbols: Ints) -> Ints:
        """A number for the probability of each row's report (its seed and bucket) given the row's symbols."""

    def _resolve_hash(self) -> None:
        self._one_of("hash", [HASH])
        self._resolve_shape()

    def blanket(self) -> Blanket:
        return Blanket(chance(self.buckets * self._least_weight), self.ratio())

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "seed", "u8"),
            ColumnSpec("private", "bucket", unsigned(self.buckets), below=self.buckets),
        )

    def outputs(self, public: Columns | None = None) -> Reports:
        return self._with_public(public, {"bucket": np.arange(self.buckets)})

    def _case_table(self, reports: Reports, values: Values) -> Ints:
        """`_case` of every report (row) and value (column), some values at a time: memory stays small."""
        symbols, n = self.symbols(values), len(reports)
        table = np.empty((n, len(symbols)), dtype=np.int64)
        step = max(1, _BLOCK // max(1, n))
        for start in range(0, len(symbols), step):
            block = symbols[start : start + step]
            seeds = np.repeat(reports.public["seed"], len(block))
            buckets = np.repeat(reports.private["bucket"].astype(np.int64), len(block))
            table[:, start : start + step] = self._case(seeds, buckets, np.tile(block, (n, 1))).reshape(n, -1)
        return table


@dataclass(frozen=True, kw_only=True)
class Collision(BucketReports):
    """Means and frequencies of sparse ternary vectors, in a seed and one of t buckets.

    Every report brings its own hash function of the 2 d symbols. A bucket that a held symbol falls in has the
    probability e^eps/Omega, Omega = s e^eps + t - s, and the rest is shared out evenly among the others. A report
    supports every symbol in its bucket: p_true = e^eps/Omega, p_false = p_reverse = 1/t, and both signs at once where
    their hashes agree. The mean squared error is about d s / (n eps^2), which no mechanism beats but by a constant.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length of the vectors, and how many entries of one may differ from 0.
    buckets, high
        How many buckets, and of 2^64 the share of one that is hit; 0 chooses those with the smallest error of the mean.
    hash
        The name of the function that a seed selects: "product32".

    Example:
        >>> collision = Collision(epsilon=2.0, dimension=16, sparsity=2)
        >>> reports = collision.randomize([{3: 1, 5: -1}] * 20_000, Random(seed=1))
        >>> collision.estimate(collision.accumulate(reports)).value.round(1)[[3, 4, 5]].tolist()
        [1.0, -0.0, -1.0]
        >>> collision.estimate(collision.accumulate(reports), of="frequency").value.round(1)[[3, 5]].tolist()
        [1.0, 1.0]

    References
    ----------
    S. Wang, Li, Li et al., 2023, section 5 (Definition 5); the exact error of the mean: `TernaryMechanism.mse`.
    """

    high: int = 0

    def _resolve(self) -> None:
        self._resolve_hash()
        if self.buckets == 0:
            self._set("buckets", collision_buckets(self.epsilon, self.dimension, self.sparsity))
        self._integer("buckets", self.sparsity + 1, MOST_BUCKETS)
        if self.high == 0:
            self._set("high", low_and_high(self.epsilon, self.sparsity, self.buckets)[1])
        self._integer("high", 1, TWO_64 // self.sparsity)
        if self.high * self.buckets <= TWO_64 or self._shares[-1].least == 0:
            raise InvalidValue("high", self.high, "a share of 2^64 above that of the other buckets, which is above 0")

    @cached_property
    def _shares(self) -> tuple[BucketWeights, ...]:
        """The weights of the other buckets, where 0, 1, ..., s buckets are hit."""
        return tuple(BucketWeights.of(c, taken=self.high, rest=self.buckets - c) for c in range(self.sparsity + 1))

    @property
    def _least_weight(self) -> int:
        return self._shares[-1].least  # the more buckets are hit, the less is left for each of the others

    def ratio(self) -> Fraction:
        return Fraction(self.high, self._least_weight)

    @cached_property
    def rates(self) -> Rates:
        # A symbol that is not held falls in the report's bucket with probability 1/t exactly.
        true, other = chance(self.high), Fraction(1, self.buckets)
        return Rates(true, other, other, both_held=true * other, both_missing=other**2)

    @property
    def words(self) -> int:
        return 2

    def _respond(self, symbols: Ints, draws: Words, rng: Random) -> dict[str, Array]:
        seed, bits = draws[:, 0], draws[:, 1]
        hit, count = self._hit(seed, symbols)
        start, each, extra = (np.array(part, dtype=np.uint64)[count] for part in zip(*self._shares, strict=True))
        rest = skipping(among_the_rest(bits - start, each, extra), hit)
        number = np.minimum(bits // np.uint64(self.high), np.uint64(self.sparsity - 1)).astype(np.int64)
        own = np.take_along_axis(hit, number[:, None], axis=1)[:, 0]
        return {"seed": seed, "bucket": np.where(bits < start, own, rest)}

    def _hit(self, seed: Words, symbols: Ints) -> tuple[Ints, Ints]:
        """The different buckets that are hit, in order, filled up with t; and how many they are."""
        held = symbols >= 0
        hashes = hash32(seed[:, None], np.where(held, symbols, 0))
        hit = np.where(held, bucket(hashes, self.buckets), self.buckets)
        hit.sort(axis=1)
        hit[:, 1:][hit[:, 1:] == hit[:, :-1]] = self.buckets
        hit.sort(axis=1)
        return hit, (hit < self.buckets).sum(axis=1)

    def _case(self, seeds: Words, buckets: Ints, symbols: Ints) -> Ints:
        """0 where the bucket is hit. Where c others are hit: 1 + 2 c, and one more for a bucket without the extra."""
        extra = np.array([shares.extra for shares in self._shares], dtype=np.int64)
        hit, count = self._hit(seeds, symbols)
        rank = buckets - (hit < buckets[:, None]).sum(axis=1)
        return np.where((hit == buckets[:, None]).any(axis=1), 0, 1 + 2 * count + (rank >= extra[count]))

    @cached_property
    def _chances(self) -> list[Fraction]:
        return [chance(self.high)] + [
            chance(shares.each + more) for shares in self._shares for more in (shares.extra > 0, 0)
        ]

    def _cases(self, reports: Reports, values: Values) -> Cases:
        return self._chances, self._case_table(reports, values)

    def _fold(self, reports: Reports) -> Ints:
        from hubbub.kernels.support import hash_support

        every = np.arange(2 * self.dimension, dtype=np.uint64)
        seeds, buckets = reports.public["seed"], reports.private["bucket"]
        counts = hash_support(seeds, buckets, self.buckets, every)
        return np.ascontiguousarray(counts.reshape(-1, 2).T)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=3, sparsity=2)
        yield cls(epsilon=2.0, dimension=2, sparsity=1, buckets=5)
        yield cls(epsilon=1.0, dimension=40, sparsity=4)


def collision_buckets(epsilon: float, dimension: int, sparsity: int, *, of: Quantity = "mean") -> int:
    """The number of buckets with the smallest mean squared error, by trying them all."""
    power = search_power(epsilon)
    t = np.arange(sparsity + 1, MOST_BUCKETS + 1, dtype=np.float64)
    true = power / (sparsity * power + t - sparsity)
    if of == "mean":
        held, missing = true + 1 / t - 2 * true / t - (true - 1 / t) ** 2, 2 / t - 2 / t**2
    else:
        held, missing = true + 1 / t + 2 * true / t - (true + 1 / t) ** 2, 2 / t - 2 / t**2
    with np.errstate(divide="ignore"):
        error = (sparsity * held + (dimension - sparsity) * missing) / (true - 1 / t) ** 2
    return int(t[np.argmin(error)])
