"""PCKV-GRR: sample one entry, and report it by direct encoding."""

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
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.ternary.ternary import Rates, TernaryMechanism
from hubbub.mechanisms.weights import TWO_64, choice_rates, choose, other_weight, truth_weight
from hubbub.random.integers import bounded
from hubbub.random.source import Random


@dataclass(frozen=True, kw_only=True)
class PCKVGRR(TernaryMechanism):
    """Means and frequencies of sparse ternary vectors, in one symbol: a position and a sign.

    Of a vector's s entries one is sampled, stubs standing for those it lacks, and is said with probability
    e^eps/Omega, Omega = e^eps + 2 d + s - 1; every other symbol has 1/Omega. Over the sampling, p_true =
    (1 + (e^eps - 1)/s)/Omega and p_false = p_reverse = 1/Omega: the error of the mean is about 4 d^2 s^2 / (n eps^2).

    The sampling hides too: a report spends ln(1 + (e^eps - 1)/s), which `effective_epsilon` says. `PCKVAGRR` uses up
    the rest, and is what to use.

    Parameters
    ----------
    epsilon
        What the answer about the sampled entry may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    other
        Of 2^64, the share of each false symbol; 0 chooses it.

    Example:
        >>> pckv = PCKVGRR(epsilon=2.0, dimension=4, sparsity=2)
        >>> reports = pckv.randomize([{0: 1, 2: -1}] * 20_000, Random(seed=1))
        >>> pckv.estimate(pckv.accumulate(reports)).value.round(1)[[0, 2]].tolist()
        [1.0, -1.0]
        >>> round(pckv.effective_epsilon, 3)
        1.434

    References
    ----------
    Gu et al., 2020; S. Wang, Li, Li et al., 2023, section 3.1. Ours: a stub has one symbol, not two signs.
    """

    other: int = 0

    def _resolve(self) -> None:
        self._resolve_shape()
        if self.other == 0:
            self._set("other", self._least_other())
        self._integer("other", 1, TWO_64 // self.options)
        if truth_weight(self.other, self.options) <= self.other:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 64-bit probabilities can tell from 0")

    def _least_other(self) -> int:
        return other_weight(self.epsilon, self.options)

    @property
    def options(self) -> int:
        """How many symbols there are: two signs for every position, and s stubs."""
        return 2 * self.dimension + self.sparsity

    @cached_property
    def _chances(self) -> tuple[Fraction, Fraction]:
        """The probability of a symbol that is not held, and of one that is."""
        truth, other = choice_rates(self.other, self.options)
        return other, (truth + (self.sparsity - 1) * other) / self.sparsity

    def ratio(self) -> Fraction:
        other, held = self._chances
        return held / other

    @cached_property
    def rates(self) -> Rates:
        other, held = self._chances
        return Rates(held, other, other)

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (ColumnSpec("private", "symbol", unsigned(self.options), below=self.options),)

    @property
    def words(self) -> int:
        return 2

    def _held(self, symbols: NDArray[np.int64]) -> NDArray[np.int64]:
        """The s symbols of each row; those of the stubs come after all others."""
        return np.where(symbols >= 0, symbols, 2 * self.dimension + np.arange(self.sparsity))

    def _respond(self, symbols: NDArray[np.int64], draws: NDArray[np.uint64], rng: Random) -> dict[str, NDArray[Any]]:
        number = bounded(draws[:, 0], np.full(len(symbols), self.sparsity), rng)
        sampled = np.take_along_axis(self._held(symbols), number[:, None], axis=1)[:, 0]
        return {"symbol": choose(sampled, draws[:, 1], self.other, self.options)}

    def _cases(self, reports: Reports, values: Any) -> Cases:
        symbols = self._held(self.symbols(values))
        held = np.zeros((len(symbols), self.options), dtype=np.int64)
        np.put_along_axis(held, symbols, 1, axis=1)
        return self._chances, np.asarray(held.T[reports.private["symbol"]])

    def outputs(self, public: Mapping[str, NDArray[Any]] | None = None) -> Reports:
        return Reports(self.spec_id, private={"symbol": np.arange(self.options, dtype=unsigned(self.options))})

    def _fold(self, reports: Reports) -> NDArray[np.int64]:
        counts = np.bincount(reports.private["symbol"], minlength=self.options)
        return np.ascontiguousarray(counts[: 2 * self.dimension].reshape(-1, 2).T)  # stubs tell nothing

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=3, sparsity=2)
        yield cls(epsilon=2.0, dimension=2, sparsity=1)
        yield cls(epsilon=2.0, dimension=40, sparsity=4)
