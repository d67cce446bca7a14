"""Reports with +, - or nothing for every position, drawn independently; k sampled entries are reported more often."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ColumnSpec, fractions
from hubbub.mechanisms.ternary.ternary import Rates, TernaryMechanism
from hubbub.random.integers import ceil_div, exp_floor, log_fraction, pack, subsets, unpack
from hubbub.random.source import Random

__all__ = ["ThreeWay"]

WHOLE = 1 << 32
_MOST_POWER = Fraction(1 << 20)  # of one entry: past it 32 bits cannot tell, and only the sampling's error is left
_ENUMERABLE = 7  # positions: 2,187 reports


class _Agreement(NamedTuple):
    """For every report and value: entries with the right and with the wrong sign, all entries, and the signs sent."""

    right: NDArray[np.int64]
    wrong: NDArray[np.int64]
    entries: NDArray[np.int64]
    signs: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ThreeWay(TernaryMechanism):
    """Of s entries, stubs included, k are sampled; of each the report has its sign, the opposite, or nothing.

    With e = e^(eps/k): a sampled entry is in the report with probability 1/2, and then has its sign with e/(e+1); any
    other position is in it with 2/(e+3), and its sign is a fair coin. Compared with a position that is not sampled, the
    right sign is e times as telling as the wrong one or nothing, which are alike: the worst ratio is e^k = e^eps, of a
    vector against its opposite where all entries have the right sign. Stubs are not sent.
    """

    false: int = 0
    reverse: int = 0
    true: int = 0

    @property
    @abstractmethod
    def entries(self) -> int:
        """How many entries are sampled, k."""

    def _resolve_shares(self) -> None:
        if not (self.false or self.reverse or self.true):
            for field, share in zip(("false", "reverse", "true"), shares(self.epsilon, self.entries), strict=True):
                self._set(field, share)
        self._integer("false", 1, WHOLE // 2 - 1)
        self._integer("reverse", 1, WHOLE - 2)
        self._integer("true", 1, WHOLE - self.reverse - 1)
        if self.true <= self.reverse or 2 * self.false >= self.true + self.reverse:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 32-bit probabilities can tell from 0")

    @cached_property
    def _factors(self) -> tuple[Fraction, Fraction, Fraction]:
        """How much more likely the right sign, the wrong one, and nothing are at a sampled entry than elsewhere."""
        return (
            Fraction(self.true, self.false),
            Fraction(self.reverse, self.false),
            Fraction(WHOLE - self.true - self.reverse, WHOLE - 2 * self.false),
        )

    def ratio(self) -> Fraction:
        factors = (*self._factors, Fraction(1))  # 1: a stub
        return Fraction(max(factors) / min(factors)) ** self.entries

    @cached_property
    def rates(self) -> Rates:
        sampled = Fraction(self.entries, self.sparsity)
        true, reverse, false = (Fraction(part, WHOLE) for part in (self.true, self.reverse, self.false))
        return Rates(sampled * true + (1 - sampled) * false, false, sampled * reverse + (1 - sampled) * false)

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return ColumnSpec.packed("plus", self.dimension), ColumnSpec.packed("minus", self.dimension)

    @property
    def report_bits(self) -> int:
        return math.ceil(self.dimension * math.log2(3))

    @property
    def words(self) -> int:
        return self.sparsity + -(-self.dimension // 2)

    def _respond(self, symbols: NDArray[np.int64], draws: NDArray[np.uint64], rng: Random) -> dict[str, NDArray[Any]]:
        n, s = symbols.shape
        sampled = subsets(draws[:, :s], np.full(n, self.entries), rng) & (symbols >= 0)
        bits = np.ascontiguousarray(draws[:, s:]).view("<u4")[:, : self.dimension]
        plus, minus = bits < np.uint32(self.false), bits < np.uint32(2 * self.false)
        minus ^= plus
        row, column = np.nonzero(sampled)
        position, turned = symbols[row, column] >> 1, symbols[row, column] & 1 == 1
        own = bits[row, position]
        right = own < np.uint32(self.true)
        wrong = (own < np.uint32(self.true + self.reverse)) & ~right
        plus[row, position], minus[row, position] = np.where(turned, (wrong, right), (right, wrong))
        return {"plus": pack(plus), "minus": pack(minus)}

    # -- probabilities and counts -----------------------------------------------------------------------------

    def check(self, reports: Reports) -> None:
        super().check(reports)
        plus, minus = reports.private["plus"], reports.private["minus"]
        if (plus & minus).any():
            raise InvalidValue("minus", "both signs at one position", "one sign at a position, or none")

    def _agreement(self, reports: Reports, values: Any) -> _Agreement:
        symbols = self.symbols(values)
        both = [unpack(reports.private[name], self.dimension) for name in ("plus", "minus")]
        signs = np.stack(both, axis=2).reshape(len(reports), -1)  # by symbol: 2 i for +, 2 i + 1 for -
        rows = [row[row >= 0] for row in symbols]
        right, wrong = (
            np.stack([signs[:, row ^ turned].sum(axis=1, dtype=np.int64) for row in rows], axis=1) for turned in (0, 1)
        )
        held = np.broadcast_to((symbols >= 0).sum(axis=1), right.shape)
        return _Agreement(right, wrong, held, np.broadcast_to(signs.sum(axis=1, dtype=np.int64)[:, None], right.shape))

    def _telling(self, right: int, wrong: int, held: int) -> Fraction:
        """How much likelier a report is than if nothing were held: over all samples of k of s, stubs included."""
        counts = (right, wrong, held - right - wrong)
        total, k = Fraction(0), self.entries
        for taken in product(*(range(min(count, k) + 1) for count in counts)):
            stubs = k - sum(taken)
            if stubs >= 0:
                ways = math.prod(map(math.comb, counts, taken)) * math.comb(self.sparsity - held, stubs)
                total += ways * math.prod(map(pow, self._factors, taken))
        return total / math.comb(self.sparsity, k)

    def _codes(self, agreement: _Agreement) -> tuple[list[Fraction], NDArray[np.int64]]:
        base = self.sparsity + 1
        numbers = (agreement.entries * base + agreement.right) * base + agreement.wrong
        codes, index = np.unique(numbers, return_inverse=True)
        tables = [self._telling(code // base % base, code % base, code // base**2) for code in map(int, codes)]
        return tables, index.reshape(agreement.entries.shape)

    def prob(self, reports: Reports, values: Any) -> NDArray[np.object_]:
        agreement, d = self._agreement(reports, values), self.dimension
        telling, index = self._codes(agreement)
        false, nothing = Fraction(self.false, WHOLE), Fraction(WHOLE - 2 * self.false, WHOLE)
        plain = [false**number * nothing ** (d - number) for number in range(d + 1)]
        return np.asarray(fractions(telling, index) * fractions(plain, agreement.signs))

    def log_prob(self, reports: Reports, values: Any) -> NDArray[np.float64]:
        agreement = self._agreement(reports, values)
        telling, index = self._codes(agreement)
        false, nothing = log_fraction(Fraction(self.false, WHOLE)), log_fraction(1 - Fraction(2 * self.false, WHOLE))
        plain = agreement.signs * false + (self.dimension - agreement.signs) * nothing
        return np.asarray(np.array([log_fraction(part) for part in telling])[index] + plain)

    def outputs(self, public: Mapping[str, NDArray[Any]] | None = None) -> Reports | None:
        if self.dimension > _ENUMERABLE:
            return None
        answers = np.arange(3**self.dimension)[:, None] // 3 ** np.arange(self.dimension) % 3
        return Reports(self.spec_id, private={"plus": pack(answers == 1), "minus": pack(answers == 2)})

    def _fold(self, reports: Reports) -> NDArray[np.int64]:
        from hubbub.kernels.estimators import column_sums

        return np.stack([column_sums(reports.private[name])[: self.dimension] for name in ("plus", "minus")])

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=3, sparsity=2)
        yield cls(epsilon=2.0, dimension=4, sparsity=1)
        yield cls(epsilon=2.0, dimension=19, sparsity=4)


def shares(epsilon: float, entries: int) -> tuple[int, int, int]:
    """Of 2^32: each sign where nothing is sampled; the wrong sign and the right one where something is.

    Rounded so that nothing is never less telling than the wrong sign, and the right one never more than e^(eps/k)
    times as much.
    """
    power = min(exp_floor(Fraction(epsilon) / entries), _MOST_POWER)
    false = ceil_div(WHOLE, power + 3)
    reverse = math.floor(WHOLE * false / (WHOLE - false + power * false))
    return false, reverse, math.floor(power * reverse)
