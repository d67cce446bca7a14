"""Mechanisms whose report is a set of m positions with a sign each, and that prefer some sets to others.

How to write one (`exsub.py` and `net_sub.py` are the examples): implement `_choose` (fill in m where it is 0),
`prefers` and `share`. The rule may look at two numbers only: how many signs of the set are those that the vector holds,
and how many are their reverses. Privacy, the sampler, the online client and the rates follow from it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Ints, Reports, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.ternary.selection import select
from hubbub.mechanisms.ternary.ternary import Rates, TernaryMechanism
from hubbub.mechanisms.weights import Blanket, resolve_two_weights
from hubbub.random.integers import ExactChoice
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.core.noise import Noise
    from hubbub.mechanisms.ternary.set_forms import SetForm

_ENUMERABLE = 5_000
_CHUNK = 1 << 22  # entries looked at together
_MOST_WEIGHTS = 1 << 30  # bits of all group weights together: 128 MiB


@dataclass(frozen=True, kw_only=True)
class SignedSets(TernaryMechanism):
    """Reports that are sets of m of D = d + s positions with a sign each; the rule of a subclass prefers some of them.

    A vector is filled up to exactly s entries by +1 at some of s stub positions. A preferred set has the weight 1, any
    other e^-eps, and the sum of all weights is the same for every vector: what is preferred depends only on how many
    signs are true and how many reversed, and every vector has s entries. So no probability differs by more than e^eps.

    The weights are integers, 2^bits and `least`, so that no set is ever impossible, however large epsilon is; the
    choice among groups of sets is exact. Within a group, positions are selected in one pass: `online.OnlineExSub` is
    the same pass, taken a timestamp at a time.
    """

    m: int = 0
    bits: int = 0
    least: int = 0

    @abstractmethod
    def _choose(self) -> None:
        """Choose the parameters that are 0, and check them."""

    @abstractmethod
    def prefers(self, trues: Any, reverses: Any) -> Any:
        """Whether a set with these numbers of true and reversed signs is preferred; for numbers or arrays."""

    @abstractmethod
    def share(self, positions: int, entries: int, size: int, *, trues: int = 0, reverses: int = 0) -> Fraction:
        """The exact share of preferred sets among all sets of `size` positions, for a vector with `entries` entries.

        `trues` and `reverses` are the numbers of true and reversed signs that the set has at other positions.
        """

    def _resolve(self) -> None:
        self._resolve_shape()
        self._choose()
        first, last = max(0, self.m - self.dimension), min(self.sparsity, self.m)  # entries that a set can meet
        groups = (last + 1) * (last + 2) // 2 - first * (first + 1) // 2
        if groups * self.sparsity * self.positions.bit_length() > _MOST_WEIGHTS:
            raise InvalidValue("sparsity", self.sparsity, f"less, or an m below {self.m}: the groups of sets are many")
        resolve_two_weights(self, self.epsilon)
        if self.p_true + self.p_reverse == 2 * self.p_false:
            self._set("answers", ("mean",))  # such as where a report has every position

    @property
    def positions(self) -> int:
        """How many positions there are, stubs included: D = d + s."""
        return self.dimension + self.sparsity

    @property
    def _floor(self) -> Fraction:
        """The weight of a set that is not preferred, as the share e^-eps of one that is."""
        return Fraction(self.least, 1 << self.bits)

    def ratio(self) -> Fraction:
        return 1 / self._floor  # a set preferred for a vector of s entries is not preferred for the opposite one

    def blanket(self) -> Blanket:
        return Blanket(self._floor / self._mean_weight, self.ratio(), both=self._both())

    def _both(self) -> Fraction | None:
        """The smallest share of sets that two vectors both prefer; None where no formula is known."""
        return None

    # -- rates and covariances --------------------------------------------------------------------------------

    def _weight(self, positions: int, entries: int, size: int, *, trues: int = 0, reverses: int = 0) -> Fraction:
        """The mean weight of sets."""
        return self._floor + (1 - self._floor) * self.share(positions, entries, size, trues=trues, reverses=reverses)

    @cached_property
    def _mean_weight(self) -> Fraction:
        return self._weight(self.positions, self.sparsity, self.m)

    @cached_property
    def rates(self) -> Rates:
        d, s, m = self.positions, self.sparsity, self.m
        unit = Fraction(m, 2 * d) / self._mean_weight
        return Rates(  # the sign at one position is fixed: the others decide whether the set is preferred
            true=unit * self._weight(d - 1, s - 1, m - 1, trues=1),
            false=unit * self._weight(d - 1, s, m - 1),
            reverse=unit * self._weight(d - 1, s - 1, m - 1, reverses=1),
        )

    def frequency_noise(self, n: int) -> Noise:
        """The variance and the covariance of frequencies, where nobody holds both of two positions."""
        from hubbub.core.noise import Noise

        d, s, m = self.positions, self.sparsity, self.m
        scale = n * self.gap("frequency") ** 2
        pair = Fraction(m * (m - 1), d * (d - 1)) / self._mean_weight
        missing, held, rest = 2 * self.p_false, self.p_true + self.p_reverse, max(m - 2, 0)
        neither = pair * self._weight(d - 2, s, rest) - missing**2 if d - 2 >= s else Fraction(0)
        either = self._weight(d - 2, s - 1, rest, trues=1) + self._weight(d - 2, s - 1, rest, reverses=1)
        single = pair * either / 2 - missing * held
        return Noise(
            floor=self.variances("frequency")[1] / n,
            slope=(self.variances("frequency")[0] - self.variances("frequency")[1]) / n,
            pair_floor=float(neither) / scale,
            pair_slope=float(single - neither) / scale,
        )

    # -- the sampler ------------------------------------------------------------------------------------------

    @cached_property
    def form(self) -> SetForm:
        """How a set is encoded in a report."""
        from hubbub.mechanisms.ternary.set_forms import AsList  # a stream of changes sends no whole set

        return AsList(self.positions, self.m)

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return self.form.columns

    @property
    def report_bits(self) -> int:
        return self.form.bits

    @property
    def words(self) -> int:
        return 1 + -(-self.positions // 2)

    def group_weights(self) -> dict[tuple[int, int], int]:
        """The exact weight of every group of sets: those with the same numbers of true and of reversed signs."""
        weighs = {True: 1 << self.bits, False: self.least}
        return group_weights(self.positions, self.sparsity, self.m, lambda *signs: weighs[bool(self.prefers(*signs))])

    @cached_property
    def _groups(self) -> tuple[NDArray[np.int32], ExactChoice]:
        """The numbers of true and reversed signs of every group, and the exact choice among the groups."""
        weights = self.group_weights()
        return np.array(list(weights), dtype=np.int32), ExactChoice(list(weights.values()))

    def counters(self, draws: Words, rng: Random) -> NDArray[np.int32]:
        """The state that selection starts from, from 64 random bits per device: it does not depend on any value."""
        signs, choice = self._groups
        chosen = signs[choice.place(draws, rng)]
        start = np.empty((len(chosen), 5), dtype=np.int32)
        start[:, :2] = chosen
        start[:, 2] = self.m - chosen.sum(axis=1)
        start[:, 3], start[:, 4] = self.sparsity, self.dimension
        return start

    def _respond(self, symbols: Ints, draws: Words, rng: Random) -> dict[str, Array]:
        words = np.ascontiguousarray(draws[:, 1:]).view("<u4")[:, : self.positions]
        return self.form.pack(self._select(self._filled(symbols), words, self.counters(draws[:, 0], rng), rng))

    def next_signs(self, values: NDArray[np.int8], counters: NDArray[np.int32], rng: Random) -> NDArray[np.int8]:
        """The signs that devices say of their next entries, a row for each; their counters are counted down."""
        signs, rows = np.empty(values.shape, dtype=np.int8), max(1, _CHUNK // max(1, values.shape[1]))
        for start in range(0, len(values), rows):
            part = slice(start, start + rows)
            signs[part] = self._select(values[part], rng.uint32(*values[part].shape), counters[part], rng)
        return signs

    def skip_entries(self, entries: int, counters: NDArray[np.int32], rng: Random) -> None:
        """Pass over a number of entries, which count as zeros and are not said; the counters are counted down."""
        while entries:
            chunk = min(entries, max(1, _CHUNK // max(1, len(counters))))
            self.next_signs(np.zeros((len(counters), chunk), dtype=np.int8), counters, rng)
            entries -= chunk

    def _select(
        self, values: NDArray[np.int8], words: NDArray[np.uint32], counters: NDArray[np.int32], rng: Random
    ) -> NDArray[np.int8]:
        return select(values, words, counters, rng)

    def _filled(self, symbols: Ints) -> NDArray[np.int8]:
        """Rows over all D positions: the vector, and as many stubs as it lacks entries."""
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
        self.form.check(reports.private)

    @cached_property
    def _set_chances(self) -> tuple[Fraction, Fraction]:
        """The probability of one set that is not preferred, and of one that is."""
        preferred = 1 / ((math.comb(self.positions, self.m) << self.m) * self._mean_weight)
        return preferred * self._floor, preferred

    def _cases(self, reports: Reports, values: Values) -> Cases:
        vectors = self._filled(self.symbols(values))
        preferred = self.prefers(*self.form.meeting(reports.private, vectors))
        return self._set_chances, np.asarray(preferred).astype(np.int64)

    def outputs(self, public: Columns | None = None) -> Reports | None:
        if math.comb(self.positions, self.m) << self.m > _ENUMERABLE:
            return None
        sets = list(product(combinations(range(self.positions), self.m), product((1, -1), repeat=self.m)))
        rows = np.zeros((len(sets), self.positions), dtype=np.int8)
        for row, (held, signs) in zip(rows, sets, strict=True):
            row[list(held)] = signs
        return self._with_public(public, self.form.pack(rows))

    def _fold(self, reports: Reports) -> Ints:
        return np.ascontiguousarray(self.form.counts(reports.private)[:, : self.dimension])  # stubs tell nothing


def group_weights(
    positions: int, entries: int, size: int, weight: Callable[[int, int], int]
) -> dict[tuple[int, int], int]:
    """The exact weight of every group of sets: those with the same numbers of true and of reversed signs (Algorithm 3).

    In proportion to the number of sets in it times the weight of one; no group that can be is left out.
    """
    weights = {}
    for held in range(min(entries, size) + 1):
        # Of all sets, C(s,j) C(D-s,m-j) 2^(m-j) share `held` positions with the vector, up to a common factor.
        sets = math.perm(size, held) * math.perm(positions - size, entries - held) << entries - held
        if sets:
            for true in range(held + 1):
                ways = math.comb(entries, true) * math.comb(entries - true, held - true)
                weights[true, held - true] = ways * sets * weight(true, held - true)
    return weights
