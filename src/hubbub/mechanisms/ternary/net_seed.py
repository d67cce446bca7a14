"""NetSeed: the net rule with a sign at every position; one short seed determines all signs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Bools, Columns, Ints, Reports, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.ternary.every_sign import EverySign, columns_of, seed_bits, solve
from hubbub.mechanisms.ternary.net_sub import best_net
from hubbub.mechanisms.weights import Blanket, resolve_two_weights
from hubbub.random.integers import ExactChoice, every_row, pack, subsets, unpack
from hubbub.random.source import Random

_ENUMERABLE = 12  # bits of a seed
_MOST_TABLE = 1 << 28
_CHUNK = 1 << 24  # signs, or bits of equations, looked at together


@dataclass(frozen=True, kw_only=True)
class NetSeed(EverySign):
    """`NetSub` with m = d + s, in a few bytes: the same rates, the same error, the same exact epsilon.

    A report has a sign for each of D = d + s positions, of which the rule looks at s. So not all 2^D rows of signs are
    needed: it is enough that, under a uniform seed, the signs at any s + 1 positions are independent and fair, which
    holds exactly for `sign_code`, with seeds of about (s/2) log2(D) bits. A seed whose row has at least t more true
    signs than reversed ones has the weight 1, any other e^-eps. As many seeds give each pattern of signs at the s
    entries of any vector, so the sum of the weights is the same for every vector. No pseudo-random generator is needed,
    and no assumption.

    A device must know its whole vector: entries cannot be reported as they come.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    t
        How many more true signs than reversed ones a preferred seed has at least; 0 chooses the best number.
    bits, least
        A seed that falls short has the weight `least` where others have 2^bits, at least e^-eps of it; 0 chooses them.
    hash
        The name of the function that turns a seed into signs; a spec without a name means "bch".

    Example:
        >>> seed = NetSeed(epsilon=1.0, dimension=128, sparsity=8)
        >>> round(seed.mse()), seed.report_bits
        (6111, 33)
        >>> reports = seed.randomize([{3: 1, 5: -1}] * 20_000, Random(seed=1))
        >>> seed.estimate(seed.accumulate(reports)).value.round(1)[[3, 5]].tolist()
        [1.0, -1.0]

    References
    ----------
    Ours: docs/net-rule.md. The idea that a seed may stand for a long report: Feldman and Talwar, 2021 (lossless
    compression of efficient private local randomizers), with a pseudo-random generator.
    """

    whole_only = True

    key_value: ClassVar[Literal["no", "named", "chosen"]] = "chosen"
    t: int = 0
    bits: int = 0
    least: int = 0
    hash: str = "bch"

    def _resolve(self) -> None:
        self._one_of("hash", ["bch"])
        self._resolve_shape()
        if self.positions * self.seed_length > _MOST_TABLE:
            raise InvalidValue("dimension", self.dimension, "less: NetSub needs no table of all positions")
        if self.t == 0:
            self._set("t", best_net(self.epsilon, self.dimension, self.sparsity, least=self.positions).t)
        self._integer("t", 1, self.sparsity)
        resolve_two_weights(self, self.epsilon)

    @property
    def positions(self) -> int:
        """How many positions there are, stubs included: D = d + s."""
        return self.dimension + self.sparsity

    @property
    def seed_length(self) -> int:
        """How many bits a seed has."""
        return seed_bits(self.positions, self.sparsity + 1)

    @property
    def code(self) -> NDArray[np.uint8]:
        return columns_of(self.positions, self.sparsity + 1)

    @cached_property
    def _trues(self) -> ExactChoice:
        """The exact choice of how many of the s signs are true."""
        s = self.sparsity
        return ExactChoice([math.comb(s, a) * self._weight(2 * a - s) for a in range(s + 1)])

    def _weight(self, net: int) -> int:
        return 1 << self.bits if net >= self.t else self.least

    def ratio(self) -> Fraction:
        return Fraction(1 << self.bits, self.least)

    def blanket(self) -> Blanket:
        return Blanket(Fraction(self.least << self.sparsity, self._trues.total), self.ratio())

    @cached_property
    def mean_trues(self) -> Fraction:
        return Fraction(sum(a * weight for a, weight in enumerate(self._trues.weights)), self._trues.total)

    # -- the sampler ------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (ColumnSpec.packed("seed", self.seed_length),)

    @property
    def words(self) -> int:
        return 1 + self.sparsity + -(-self.seed_length // 64)

    def _respond(self, symbols: Ints, draws: Words, rng: Random) -> dict[str, Array]:
        s = self.sparsity
        true = subsets(draws[:, 1 : 1 + s], self._trues.place(draws[:, 0], rng), rng)
        seeds = unpack(np.ascontiguousarray(draws[:, 1 + s :]).view(np.uint8), self.seed_length)
        positions, minus = self._filled(symbols)
        wanted = (minus ^ ~true).astype(np.uint8)  # a bit of 1 says -1
        step = max(1, _CHUNK // (s * self.seed_length))
        for start in range(0, len(seeds), step):
            chunk = slice(start, start + step)
            # A uniform seed, moved to where its signs at the entries are the wanted ones: uniform among those seeds.
            rows = np.moveaxis(self.code[:, positions[chunk]], 0, 2)
            now = (rows & seeds[chunk, None]).sum(axis=2, dtype=np.int64) & 1
            seeds[chunk] ^= solve(rows, wanted[chunk] ^ now.astype(np.uint8))
        return {"seed": pack(seeds.astype(bool))}

    def _filled(self, symbols: Ints) -> tuple[Ints, Bools]:
        """The positions of exactly s entries, stubs included, and which of them are -1."""
        missing = symbols < 0
        stubs = self.dimension + np.cumsum(missing, axis=1) - 1
        return np.where(missing, stubs, symbols >> 1), ~missing & (symbols & 1 == 1)

    # -- probabilities and counts -----------------------------------------------------------------------------

    def _minus(self, reports: Reports, positions: Ints | slice) -> Bools:
        """Whether each report's sign is -1 at some positions: exact sums of whole numbers in floats."""
        seeds = unpack(reports.private["seed"], self.seed_length).astype(np.float32)
        return np.asarray((seeds @ self.code[:, positions].astype(np.float32)).astype(np.int32) & 1 == 1)

    def _net(self, reports: Reports, values: Values) -> Ints:
        nets = []
        for positions, minus in zip(*self._filled(self.symbols(values)), strict=True):
            wrong = (self._minus(reports, positions) != minus).sum(axis=1)
            nets.append(self.sparsity - 2 * wrong)
        return np.stack(nets, axis=1)

    @cached_property
    def _seed_chances(self) -> tuple[Fraction, Fraction]:
        """The probability of a seed that falls short, and of one that does not: 2^(L-s) seeds a pattern."""
        seeds = Fraction(self._trues.total) * 2 ** (self.seed_length - self.sparsity)
        return self.least / seeds, (1 << self.bits) / seeds

    def _cases(self, reports: Reports, values: Values) -> Cases:
        return self._seed_chances, (self._net(reports, values) >= self.t).astype(np.int64)

    def outputs(self, public: Columns | None = None) -> Reports | None:
        return (
            None if self.seed_length > _ENUMERABLE else self._with_public(public, {"seed": every_row(self.seed_length)})
        )

    def _fold(self, reports: Reports) -> Ints:
        minus, step = np.zeros(self.dimension, dtype=np.int64), max(1, _CHUNK // self.dimension)
        for start in range(0, len(reports), step):
            minus += self._minus(reports[start : start + step], slice(0, self.dimension)).sum(axis=0)
        return np.stack([len(reports) - minus, minus])

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=math.log(2), dimension=2, sparsity=1)
        yield cls(epsilon=1.0, dimension=4, sparsity=2)
        yield cls(epsilon=1.0, dimension=4, sparsity=3, t=3)
        yield cls(epsilon=1.0, dimension=40, sparsity=4)
