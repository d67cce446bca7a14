"""Mechanisms that report on one position, drawn independently of the value: +, - or nothing."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Reports
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.ternary.collision import chance
from hubbub.mechanisms.ternary.ternary import Rates, TernaryMechanism
from hubbub.mechanisms.weights import TWO_64
from hubbub.random.integers import bounded
from hubbub.random.source import Random

PLUS, MINUS, NOTHING = range(3)


class SignWeights(NamedTuple):
    """Weights of 2^64: of the held sign and its opposite where a sign is held, and of each sign where none is."""

    true: int
    reverse: int
    false: int


@dataclass(frozen=True, kw_only=True)
class OneKey(TernaryMechanism):
    """One of d positions is drawn, publicly; the answer is +, -, or nothing.

    A report tells of 1/d of the vector: the error of the mean is of the order d^2 / (n eps^2), whatever s is.
    """

    @property
    @abstractmethod
    def shares(self) -> SignWeights:
        """The weights of the answers."""

    @cached_property
    def _table(self) -> tuple[tuple[int, int, int], ...]:
        """Of 2^64, the share of each answer (column) where +, - or nothing is held (row)."""
        true, reverse, false = self.shares
        held = TWO_64 - true - reverse
        return (true, reverse, held), (reverse, true, held), (false, false, TWO_64 - 2 * false)

    def ratio(self) -> Fraction:
        return max(Fraction(max(column), min(column)) for column in zip(*self._table, strict=True))

    @cached_property
    def rates(self) -> Rates:
        true, reverse, false = (chance(weight) / self.dimension for weight in self.shares)
        return Rates(true, false, reverse)

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "key", unsigned(self.dimension), below=self.dimension),
            ColumnSpec("private", "answer", "u1", below=3),
        )

    @property
    def words(self) -> int:
        return 2

    def _respond(self, symbols: NDArray[np.int64], draws: NDArray[np.uint64], rng: Random) -> dict[str, NDArray[Any]]:
        key = bounded(draws[:, 0], np.full(len(symbols), self.dimension), rng)
        held = _held(symbols, key[:, None])
        table = np.array(self._table, dtype=np.uint64)  # every share is below 2^64: none is impossible
        bits, first, second = draws[:, 1], table[held, PLUS], table[held, MINUS]
        answer = np.where(bits < first, PLUS, np.where(bits - first < second, MINUS, NOTHING))
        return {"key": key, "answer": answer}

    def _cases(self, reports: Reports, values: Any) -> Cases:
        keys = reports.public["key"].astype(np.int64)
        held = np.stack([_held(row[None, :], keys[:, None]) for row in self.symbols(values)], axis=1)
        chances = [chance(weight) for row in self._table for weight in row]
        return chances, np.asarray(3 * held + reports.private["answer"][:, None])

    def outputs(self, public: Mapping[str, NDArray[Any]] | None = None) -> Reports:
        key = np.zeros(1, dtype=unsigned(self.dimension)) if public is None else public["key"]
        every = np.arange(3, dtype=np.uint8)
        return Reports(self.spec_id, public={"key": np.repeat(key, 3)}, private={"answer": every})

    def _fold(self, reports: Reports) -> NDArray[np.int64]:
        answer, key = reports.private["answer"], reports.public["key"]
        return np.stack([np.bincount(key[answer == sign], minlength=self.dimension) for sign in (PLUS, MINUS)])

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=3, sparsity=2)
        yield cls(epsilon=2.0, dimension=1, sparsity=1)
        yield cls(epsilon=2.0, dimension=20, sparsity=4)


def _held(symbols: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each row holds at its key: +, - or nothing."""
    plus, minus = (symbols == 2 * keys).any(axis=1), (symbols == 2 * keys + 1).any(axis=1)
    return np.where(plus, PLUS, np.where(minus, MINUS, NOTHING))
