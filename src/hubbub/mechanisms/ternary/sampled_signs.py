"""SQKR: a report is a few entries of a vector drawn at random, and their signs with noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Sketch, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.ternary.every_sign import MeanOnly
from hubbub.mechanisms.ternary.ternary import Rates
from hubbub.mechanisms.weights import TWO_64, Blanket, choice_rates, choose, other_weight, search_power, truth_weight
from hubbub.random.integers import distinct
from hubbub.random.source import Random

MOST_SIGNS = 12


@dataclass(frozen=True, kw_only=True)
class SQKR(MeanOnly):
    """Means of dense vectors of bounded entries, in k positions and k bits.

    A device rounds every entry to a sign without bias, an entry of 0 to a fair one. A report names k positions drawn
    uniformly (`signs`), and their signs: all true with probability p = e^eps/(e^eps + 2^k - 1), else any others. With
    g = p less the probability of each other choice, the error of a mean is d/(k g^2) less its share of holders. That is
    less than `NetSub`'s where vectors are dense (s near d) and epsilon is at most 4, and far more where they are
    sparse.

    Of the paper this is quantisation, subsampling and response, in exact integers. Kashin's representation, which makes
    entries bounded where only the length of a vector is, comes before, and is left to the caller: it is computed in
    floats, and its bound holds for most frames, not for each.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    signs, other
        How many entries a report tells, at most s, and of 2^64 the share of each other choice of signs; 0 chooses those
        of the smallest error.

    Example:
        >>> sqkr = SQKR(epsilon=4.0, dimension=16, sparsity=16)
        >>> reports = sqkr.randomize([[1, -1] * 8] * 20_000, Random(seed=1))
        >>> sqkr.estimate(sqkr.accumulate(reports)).value.round(1)[:4].tolist(), round(sqkr.mse(), 1)
        ([1.0, -1.0, 1.0, -1.0], 91.9)

    References
    ----------
    Chen, Kairouz and Ozgur, 2020, section 3.
    """

    whole_only = True
    key_value: ClassVar[Literal["no", "named", "chosen"]] = "named"
    signs: int = 0
    other: int = 0

    def _resolve(self) -> None:
        self._resolve_shape()
        most = min(self.sparsity, MOST_SIGNS)
        if self.signs == 0:
            power = search_power(self.epsilon)
            self._set("signs", max(range(1, most + 1), key=lambda k: k / (power - 1 + 2**k) ** 2))
        self._integer("signs", 1, most)
        if self.other == 0:
            self._set("other", other_weight(self.epsilon, self.options))
        self._integer("other", 1, TWO_64 // self.options)
        if truth_weight(self.other, self.options) <= self.other:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 64-bit probabilities can tell from 0")

    @property
    def options(self) -> int:
        """How many choices of signs there are."""
        return 1 << self.signs

    @cached_property
    def rates(self) -> Rates:
        p, q = choice_rates(self.other, self.options)
        drawn = Fraction(self.signs, self.dimension)
        return Rates(drawn * (1 + p - q) / 2, drawn / 2, drawn * (1 - p + q) / 2)

    @cached_property
    def square(self) -> float:
        return float(Fraction(self.signs, self.dimension) / self.rates.gap("mean") ** 2)

    def ratio(self) -> Fraction:
        p, q = choice_rates(self.other, self.options)
        return p / q

    def blanket(self) -> Blanket:
        return Blanket(self.options * choice_rates(self.other, self.options)[1], self.ratio())

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "positions", unsigned(self.dimension), (self.signs,), below=self.dimension),
            ColumnSpec("private", "signs", unsigned(self.options), below=self.options),
        )

    def check(self, reports: Reports) -> None:
        super().check(reports)
        if (np.diff(reports.public["positions"].astype(np.int64), axis=1) <= 0).any():
            raise InvalidValue("positions", "a position twice, or out of order", f"{self.signs} in increasing order")

    @property
    def words(self) -> int:
        return self.signs + 2

    def _respond(self, symbols: Ints, draws: Words, rng: Random) -> dict[str, Array]:
        positions = distinct(draws[:, : self.signs], self.dimension, rng)
        held, fair = (
            self._bits(positions, symbols),
            draws[:, self.signs, None] >> np.arange(self.signs, dtype=np.uint64),
        )
        minus = np.where(held < 0, (fair & np.uint64(1)).astype(np.int64), held)
        signs = choose(minus @ self._places, draws[:, self.signs + 1], self.other, self.options)
        return {"positions": positions, "signs": signs}

    @property
    def _places(self) -> Ints:
        return 1 << np.arange(self.signs)

    def _bits(self, positions: Ints, symbols: Ints) -> Ints:
        """At each of a row's positions: 0 where the row of symbols has +1, 1 where it has -1, else -1."""
        bits = np.full(positions.shape, -1, dtype=np.int64)
        for column in symbols.T:
            bits = np.where(positions == column[:, None] >> 1, column[:, None] & 1, bits)
        return bits

    def _cases(self, reports: Reports, values: Values) -> Cases:
        p, q = choice_rates(self.other, self.options)
        positions = reports.public["positions"].astype(np.int64)
        bits = reports.private["signs"].astype(np.int64)[:, None] >> np.arange(self.signs) & 1
        cases = []
        for row in self.symbols(values):
            held = self._bits(positions, np.broadcast_to(row, (len(positions), row.size)))
            agree = ((held < 0) | (held == bits)).all(axis=1)
            cases.append(np.where(agree, 1 + (held < 0).sum(axis=1), 0))
        return [q, *(q + (p - q) / 2**fair for fair in range(self.signs + 1))], np.stack(cases, axis=1)

    def outputs(self, public: Columns | None = None) -> Reports:
        shared = public or {"positions": np.arange(self.signs)[None, :]}
        return self._with_public(shared, {"signs": np.arange(self.options)})

    def _fold(self, reports: Reports) -> Ints:
        minus = reports.private["signs"].astype(np.int64)[:, None] >> np.arange(self.signs) & 1
        cell = minus * self.dimension + reports.public["positions"]
        return np.bincount(cell.ravel(), minlength=2 * self.dimension).reshape(self.sketch_shape)

    def _means(self, sketch: Sketch) -> Floats:
        counts = sketch.counts
        if counts.min() < 0 or int(counts.sum()) != self.signs * sketch.n:
            raise InvalidValue("counts", int(counts.sum()), f"{self.signs} signs of each of {sketch.n} reports")
        return np.asarray((counts[0] - counts[1]) / sketch.n / self.gap("mean"))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=3, sparsity=2)
        yield cls(epsilon=2.0, dimension=4, sparsity=4, signs=2)
        yield cls(epsilon=4.0, dimension=40, sparsity=40)
