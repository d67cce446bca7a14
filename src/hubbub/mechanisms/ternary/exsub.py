"""ExSub, exclusive subsets: say m positions with a sign each, among them more often a true one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.categorical import ExactChoice
from hubbub.core.errors import InvalidValue
from hubbub.core.exact import ceil_div, exp_floor, log_fraction
from hubbub.core.noise import Noise
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ColumnSpec, fractions
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.ternary.exclusive import best_size, exclusive_rates, group_weights, miss_chance
from hubbub.mechanisms.ternary.selection import select
from hubbub.mechanisms.ternary.ternary import Rates, TernaryMechanism

__all__ = ["ExSub"]

_ENUMERABLE = 5_000
_MOST_BITS = 1 << 11
_MOST_WEIGHTS = 1 << 30  # bits of all group weights together: 128 MiB


@dataclass(frozen=True, kw_only=True)
class ExSub(TernaryMechanism):
    """Means of sparse ternary vectors with a small error at any epsilon, and one that can be said as they come.

    A vector is filled up to exactly s entries by +1 at some of s stub positions: D = d + s in all. A report is a set
    of m of the D positions with a sign each. A set that holds a true sign has the weight 1, one that misses them all
    e^-eps, and the sum of all weights is the same for every vector. Rates: section 5.4 of the paper, with D everywhere.

    The weights are integers, 2^bits and `least`, so that no set is ever impossible, however large epsilon is; the
    choice among groups of sets is exact. Within a group, positions are selected in one pass: `online.OnlineExSub` is
    the same pass, taken a timestamp at a time.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    m
        How many positions a report says, fewer than d + s; 0 chooses the number with the smallest error of the mean.
        For frequencies take `exclusive.best_size(..., of="frequency")`: with one entry and a small epsilon, what is
        best for the mean (nearly every position) tells next to nothing of frequencies.
    bits, least
        A set that misses has the weight `least` beside 2^bits, at least e^-eps of it; 0 chooses them.

    Example:
        >>> exsub = ExSub(epsilon=2.0, dimension=16, sparsity=2)
        >>> reports = exsub.randomize([{3: 1, 5: -1}] * 20_000, Random(seed=1))
        >>> exsub.estimate(exsub.accumulate(reports)).value.round(1)[[3, 5]].tolist(), exsub.m
        ([1.0, -1.0], 2)

    References
    ----------
    sao2-exsub, section 5 (Definition 5.1, Algorithm 3, Proposition 5.2, Lemma B.1).
    """

    m: int = 0
    bits: int = 0
    least: int = 0

    def _resolve(self) -> None:
        self._resolve_shape()
        if self.m == 0:
            self._set("m", best_size(self.epsilon, self.positions, self.sparsity))
        self._integer("m", 1, self.positions - 1)
        held = min(self.sparsity, self.m) + 1
        if held**2 // 2 * self.sparsity * self.positions.bit_length() > _MOST_WEIGHTS:
            raise InvalidValue("sparsity", self.sparsity, f"less, or an m below {self.m}: the groups of sets are many")
        if self.bits == 0:
            self._set("bits", 65 + int(self.epsilon / math.log(2)))  # so that `least` keeps 64 bits
        self._integer("bits", 1, _MOST_BITS)
        if self.least == 0:
            self._set("least", ceil_div(1 << self.bits, exp_floor(self.epsilon)))
        if self.least == 1 << self.bits:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 64-bit weights can tell from 0")
        self._integer("least", 1, (1 << self.bits) - 1)

    @property
    def positions(self) -> int:
        """How many positions there are, stubs included: D = d + s."""
        return self.dimension + self.sparsity

    @property
    def _floor(self) -> Fraction:
        """The weight of a set that misses, as the share e^-eps of one that does not."""
        return Fraction(self.least, 1 << self.bits)

    def ratio(self) -> Fraction:
        return 1 / self._floor  # some set holds a true sign of one vector and misses the opposite one

    @cached_property
    def rates(self) -> Rates:
        return exclusive_rates(self.positions, self.sparsity, self.m, self._floor)

    def frequency_noise(self, n: int) -> Noise:
        """The variance and the covariance of frequencies; positions held together by one person are left aside."""
        d, s, m, gain = self.positions, self.sparsity, self.m, 1 - self._floor
        scale = n * self._gap("frequency") ** 2
        pair = Fraction(m * (m - 1), d * (d - 1)) / (1 - gain * miss_chance(d, s, m))
        missing, held = 2 * self.p_false, self.p_true + self.p_reverse
        rest = max(m - 2, 0)
        neither = pair * (1 - gain * miss_chance(d - 2, s, rest)) - missing**2 if d - 2 >= s else Fraction(0)
        one = pair * (1 - gain * miss_chance(d - 2, s - 1, rest) / 2) - missing * held
        return Noise(
            floor=self.variances("frequency")[1] / n,
            slope=(self.variances("frequency")[0] - self.variances("frequency")[1]) / n,
            pair_floor=float(neither) / scale,
            pair_slope=float(one - neither) / scale,
        )

    # -- the sampler ------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        symbols = 2 * self.positions
        return (ColumnSpec("private", "symbol", unsigned(symbols), (self.m,), below=symbols),)

    @property
    def words(self) -> int:
        return 1 + -(-self.positions // 2)

    @cached_property
    def _groups(self) -> tuple[NDArray[np.int32], ExactChoice]:
        """How many true and reversed signs a group says, and the exact choice among the groups."""
        weights = group_weights(self.positions, self.sparsity, self.m, missing=self.least, meeting=1 << self.bits)
        return np.array(list(weights), dtype=np.int32), ExactChoice(list(weights.values()))

    def counters(self, draws: NDArray[np.uint64], rng: Random) -> NDArray[np.int32]:
        """The state that selection starts from, from 64 random bits a device: it does not depend on any value."""
        signs, choice = self._groups
        said = signs[choice.place(draws, rng)]
        start = np.empty((len(said), 5), dtype=np.int32)
        start[:, :2] = said
        start[:, 2] = self.m - said.sum(axis=1)
        start[:, 3], start[:, 4] = self.sparsity, self.dimension
        return start

    def _respond(self, symbols: NDArray[np.int64], draws: NDArray[np.uint64], rng: Random) -> dict[str, NDArray[Any]]:
        words = np.ascontiguousarray(draws[:, 1:]).view("<u4")[:, : self.positions]
        said = self._select(self._filled(symbols), words, self.counters(draws[:, 0], rng), rng)
        row, position = np.nonzero(said)  # in order of rows, then of positions
        return {"symbol": (2 * position + (said[row, position] < 0)).reshape(len(symbols), self.m)}

    def _select(
        self, values: NDArray[np.int8], words: NDArray[np.uint32], counters: NDArray[np.int32], rng: Random
    ) -> NDArray[np.int8]:
        return select(values, words, counters, rng)

    def _filled(self, symbols: NDArray[np.int64]) -> NDArray[np.int8]:
        """Rows over all D positions: the vector, and as many stubs as it has entries too few."""
        filled = np.zeros((len(symbols), self.positions), dtype=np.int8)
        row, column = np.nonzero(symbols >= 0)
        held = symbols[row, column]
        filled[row, held >> 1] = 1 - 2 * (held & 1)
        stubs = self.sparsity - (symbols >= 0).sum(axis=1)
        filled[:, self.dimension :] = np.arange(self.sparsity) < stubs[:, None]
        return filled

    # -- probabilities and counts -----------------------------------------------------------------------------

    def check(self, reports: Reports) -> None:
        super().check(reports)
        position = reports.private["symbol"].astype(np.int64) >> 1
        if (np.diff(position, axis=1) <= 0).any():
            raise InvalidValue("symbol", "positions out of order or twice", f"{self.m} positions in order")

    @cached_property
    def _each(self) -> tuple[Fraction, Fraction]:
        """The probability of one set that misses, and of one that does not."""
        missed = miss_chance(self.positions, self.sparsity, self.m)
        sets = math.comb(self.positions, self.m) << self.m
        meets = 1 / (sets * (1 - (1 - self._floor) * missed))
        return meets * self._floor, meets

    def _meets(self, reports: Reports, values: Any) -> NDArray[np.bool_]:
        vectors = self._filled(self.symbols(values))
        held = np.stack([vectors > 0, vectors < 0], axis=2).reshape(len(vectors), -1)
        symbols = reports.private["symbol"]
        return np.stack([row[symbols].any(axis=1) for row in held], axis=1)

    def prob(self, reports: Reports, values: Any) -> NDArray[np.object_]:
        return fractions(self._each, self._meets(reports, values).astype(int))

    def log_prob(self, reports: Reports, values: Any) -> NDArray[np.float64]:
        misses, meets = (log_fraction(each) for each in self._each)
        return np.where(self._meets(reports, values), meets, misses)

    def outputs(self, public: Mapping[str, NDArray[Any]] | None = None) -> Reports | None:
        if math.comb(self.positions, self.m) << self.m > _ENUMERABLE:
            return None
        sets = product(combinations(range(self.positions), self.m), product((0, 1), repeat=self.m))
        symbols = [[2 * p + sign for p, sign in zip(held, signs, strict=True)] for held, signs in sets]
        return Reports(self.spec_id, private={"symbol": np.array(symbols, dtype=self.columns[0].dtype)})

    def _fold(self, reports: Reports) -> NDArray[np.int64]:
        counts = np.bincount(reports.private["symbol"].ravel(), minlength=2 * self.positions)
        return np.ascontiguousarray(counts[: 2 * self.dimension].reshape(-1, 2).T)  # stubs tell nothing

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=math.log(2), dimension=2, sparsity=1, m=2)
        yield cls(epsilon=1.0, dimension=4, sparsity=2, m=2)
        yield cls(epsilon=1.0, dimension=40, sparsity=4)
