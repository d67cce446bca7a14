"""Reports with a sign for every position: fair coins, except at the s entries, where fewer signs disagree.

Such a mechanism is determined by a list of s + 1 weights: the likelihood of a pattern of signs on the s entries, by the
number of signs that disagree with the vector.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.ternary.every_sign import EverySign
from hubbub.random.integers import ExactChoice, every_row, pack, subsets, unpack
from hubbub.random.source import Random

_ENUMERABLE = 12  # positions: 4,096 reports
_MOST_WEIGHTS = 1 << 27  # bits of all weights together: 16 MiB, and some seconds


@dataclass(frozen=True, kw_only=True)
class SignVector(EverySign):
    """A report is d signs. A pattern of signs on the s entries that disagrees h times has the weight w_h.

    A vector with fewer than s entries is filled up with stubs, which are not sent. Two vectors on the same positions
    can disagree with one report in any two numbers of places, so that the worst ratio is the largest weight over the
    smallest.
    """

    @property
    @abstractmethod
    def weights(self) -> list[int]:
        """The weight of one pattern that disagrees 0, 1, ..., s times; all above 0."""

    def _check_weights(self, bits: int) -> None:
        """Refuse weights of this number of bits each if they do not fit into memory."""
        if bits * (self.sparsity + 1) > _MOST_WEIGHTS:
            raise InvalidValue(
                "sparsity", self.sparsity, "less: the exact weights of this number of entries are too long"
            )

    @cached_property
    def _patterns(self) -> tuple[list[int], ExactChoice]:
        """The weights, and the exact choice of how many signs disagree."""
        weights, s = self.weights, self.sparsity
        return weights, ExactChoice([math.comb(s, h) * weight for h, weight in enumerate(weights)])

    def ratio(self) -> Fraction:
        weights = self._patterns[0]
        return Fraction(max(weights), min(weights))

    @cached_property
    def mean_trues(self) -> Fraction:
        choice, s = self._patterns[1], self.sparsity
        return Fraction(sum((s - h) * weight for h, weight in enumerate(choice.weights)), choice.total)

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (ColumnSpec.packed("plus", self.dimension),)

    @property
    def words(self) -> int:
        return 1 + self.sparsity + -(-self.dimension // 64)

    def _respond(self, symbols: NDArray[np.int64], draws: NDArray[np.uint64], rng: Random) -> dict[str, NDArray[Any]]:
        d, s = self.dimension, self.sparsity
        turned = subsets(draws[:, 1 : 1 + s], self._patterns[1].place(draws[:, 0], rng), rng)
        plus = unpack(np.ascontiguousarray(draws[:, 1 + s :]).view(np.uint8), d)
        row, column = np.nonzero(symbols >= 0)
        held = symbols[row, column]
        plus[row, held >> 1] = (held & 1 == 0) ^ turned[row, column]
        return {"plus": pack(plus.astype(bool))}

    # -- probabilities and counts -----------------------------------------------------------------------------

    def _disagreeing(self, reports: Reports, values: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many entries each value (column) has, and on how many of them each report (row) disagrees."""
        plus = unpack(reports.private["plus"], self.dimension)
        symbols = self.symbols(values)
        rows = [row[row >= 0] for row in symbols]
        wrong = np.stack([(plus[:, row >> 1] != 1 - (row & 1)).sum(axis=1) for row in rows], axis=1)
        return (symbols >= 0).sum(axis=1), wrong.astype(np.int64)

    def _chance(self, held: int, wrong: int) -> Fraction:
        """The probability of one pattern on the `held` entries there are, whatever the stubs would have said."""
        weights, choice = self._patterns
        stubs = self.sparsity - held
        return Fraction(sum(math.comb(stubs, h) * weights[wrong + h] for h in range(stubs + 1)), choice.total)

    def _cases(self, reports: Reports, values: Any) -> Cases:
        held, wrong = self._disagreeing(reports, values)
        codes, index = np.unique(held * (self.sparsity + 1) + wrong, return_inverse=True)
        pairs = [divmod(code, self.sparsity + 1) for code in codes.tolist()]
        chances = [self._chance(*pair) / (1 << self.dimension - pair[0]) for pair in pairs]
        return chances, index.reshape(wrong.shape)

    def outputs(self, public: Mapping[str, NDArray[Any]] | None = None) -> Reports | None:
        return None if self.dimension > _ENUMERABLE else self._with_public(public, {"plus": every_row(self.dimension)})

    def _fold(self, reports: Reports) -> NDArray[np.int64]:
        from hubbub.kernels.estimators import column_sums

        plus = column_sums(reports.private["plus"])[: self.dimension]
        return np.stack([plus, len(reports) - plus])

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=3, sparsity=2)
        yield cls(epsilon=1.0, dimension=4, sparsity=3)
        yield cls(epsilon=2.0, dimension=19, sparsity=4)
