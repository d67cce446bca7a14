"""Padding and sampling: a set is filled up with dummies, one of its elements is drawn, and an oracle reports it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Ordinal, Sets, Values
from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Sketch, Words
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, Moments
from hubbub.mechanisms.sets.set_mechanism import SetMechanism
from hubbub.mechanisms.stateful import Stateful
from hubbub.mechanisms.weights import TWO_64, truth_weight
from hubbub.random.integers import bounded, ceil_div, exp_floor, log_upper
from hubbub.random.source import Random

MOST_LENGTH = 1 << 20
ADAPTIVE = ("GRR", "OLH")
"""The oracles to choose from, by variance, where none is named (section 5.2.4)."""


@dataclass(frozen=True, kw_only=True)
class PSFO(SetMechanism):
    """Shares of the items of sets, by padding and sampling over any frequency oracle.

    A set of fewer than l items is filled up with dummies, one of its elements is drawn uniformly, and the oracle
    reports it among d + l values; estimated shares are multiplied by l. A report supports an item that its sender holds
    with probability q + (p-q)/l, any other with q, so that the variance of a share f is exactly
    (l/(p-q))^2 [f (q + (p-q)/l)(1 - q - (p-q)/l) + (1-f) q (1-q)] / n.

    Drawing one of l elements hides which of them was reported: GRR may be run with e^eps' = l (e^eps - 1) + 1, and a
    report spends ln(1 + (e^eps' - 1)/l), exactly (Theorem 5.2.1). A report of any other oracle can support all of a set
    at once, and spends all of the oracle's epsilon (Theorem 5.2.2).

    Of a set of k > l items each is drawn with probability 1/k, which spends no more, and counts l/k. Where the domain
    has such sets, estimates are therefore too small, by a part of at most 1 - l/most, and `bias` declares it;
    `LengthShares.update_factor` corrects for it on average.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A `Sets`; or its items, for any set of them.
    length
        How many elements a set is filled up to; 0 chooses the largest size of the domain's sets.
    oracle
        The oracle: its name, its spec, or the oracle itself, over Ordinal(d + length). An empty name chooses GRR or
        OLH, whichever has the smaller exact variance for a rare item.

    Example:
        >>> from hubbub import Ordinal, Sets
        >>> psfo = PSFO(epsilon=2.0, domain=Sets(Ordinal(6), most=3), oracle="GRR")
        >>> reports = psfo.randomize([{0, 2, 5}] * 15_000 + [{2}] * 5_000, Random(seed=1))
        >>> psfo.estimate(psfo.accumulate(reports)).value.round(1).tolist()
        [0.8, -0.0, 1.0, 0.0, -0.0, 0.7]
        >>> round(psfo.oracle.effective_epsilon, 2), round(psfo.effective_epsilon, 12)
        (3.0, 2.0)

    References
    ----------
    T. Wang, Li and Jha, 2018; T. Wang, 2021, sections 5.2 and 5.2.4. Variances are the bracketed exact line of Theorem
    5.2.4.
    """

    length: int = 0
    oracle: FrequencyOracle | Mapping[str, object] | str = ""
    fixed_block = False

    def _resolve(self) -> None:
        self._resolve_sets()
        if self.length == 0:
            self._set("length", self.sets.most)
        self._integer("length", 1, MOST_LENGTH)
        if isinstance(self.oracle, str):
            self._set("oracle", self._named(self.oracle))
        elif isinstance(self.oracle, Mapping):
            self._set("oracle", FrequencyOracle.from_spec(self.oracle))
        inner = self.oracle
        if not isinstance(inner, FrequencyOracle) or isinstance(inner, Stateful):
            raise InvalidValue("oracle", inner, "a frequency oracle, its name or its spec")
        if inner.domain != Ordinal(self.size + self.length):
            raise InvalidValue("oracle", inner.domain, f"an oracle over {self.size} items and {self.length} dummies")

    def _named(self, name: str) -> FrequencyOracle:
        if name:
            return self._oracle(name)
        choices = [self._oracle(choice) for choice in ADAPTIVE]
        return min(choices, key=lambda oracle: _floor(oracle, self.length))

    def _oracle(self, name: str) -> FrequencyOracle:
        """An oracle that spends what a report of this mechanism may."""
        if name == "GRR":
            return amplified_grr(self.epsilon, self.size, self.length)
        from hubbub.mechanisms import MECHANISMS

        kind = MECHANISMS.get(name)
        if kind is None or not issubclass(kind, FrequencyOracle):
            raise InvalidValue("oracle", name, "the name of a frequency oracle")
        return kind(epsilon=self.epsilon, domain=Ordinal(self.size + self.length))

    @cached_property
    def inner(self) -> FrequencyOracle:
        assert isinstance(self.oracle, FrequencyOracle)
        return self.oracle

    @property
    def bias(self) -> Literal["none", "consistent", "heuristic"]:  # type: ignore[override]
        """Heuristic where sets may be longer than `length`, or where the oracle's bias is."""
        return "heuristic" if self.sets.most > self.length else self.inner.bias

    def ratio(self) -> Fraction:
        whole = self.inner.ratio()
        return 1 + (whole - 1) / self.length if type(self.inner) is GRR else whole

    def moments(self) -> Moments:
        true, false, true_variance, false_variance = self.inner.moments()
        part, gap = 1 / self.length, true - false
        spread = part * true_variance + (1 - part) * false_variance + part * (1 - part) * gap**2
        return Moments(false + part * gap, false, spread, false_variance)

    def _support_means(self) -> tuple[Fraction, Fraction]:
        true, false = self.inner._support_means()
        return false + (true - false) / self.length, false

    def _supported(self, values: int) -> tuple[int, int]:
        return self.inner._supported(values)

    @property
    def support_range(self) -> tuple[int, int]:  # type: ignore[override]
        """The oracle's."""
        return self.inner.support_range

    @property
    def confusion(self) -> float:
        """The oracle's: shares and errors are both multiplied by the length."""
        return self.inner.confusion

    @property
    def values_held(self) -> int:
        return self.length

    @property
    def values_counted(self) -> int:
        return self.inner.size

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return self.inner.columns

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return self.inner.sketch_shape

    def truth(self, values: Values) -> Floats:
        people = self.encode(values)
        counted = np.minimum(self.length / np.maximum(people.sizes, 1), 1.0)
        return np.bincount(people.items, counted[people.owners], minlength=self.size) / max(len(people), 1)

    def _randomize(self, codes: ItemSets, rng: Random) -> dict[str, Array]:  # type: ignore[override]
        return self.inner._randomize(self.drawn(codes, rng), rng)

    def drawn(self, people: ItemSets, rng: Random) -> Ints:
        """One element of each set filled up with dummies, which are numbered from d on."""
        sizes = people.sizes
        place = bounded(rng.uint64(len(people)), np.maximum(sizes, self.length), rng)
        held = place < sizes
        elements = self.size + place  # the dummy of that place: fixed dummies serve as well as random ones
        elements[held] = people.items[(people.offsets[:-1] + place)[held]]
        return elements

    def _inner_reports(self, reports: Reports) -> Reports:
        return Reports(self.inner.spec_id, public=reports.public, private=reports.private)

    def check(self, reports: Reports) -> None:
        super().check(reports)
        self.inner.check(self._inner_reports(reports))

    def _elements(self, values: Values) -> tuple[Ints, list[Ints]]:
        """The different elements of some padded sets, and the places of each set's among them."""
        people = self.encode(values)
        dummies = self.size + np.arange(self.length)
        padded = [np.concatenate([people[k], dummies[len(people[k]) :]]) for k in range(len(people))]
        different = np.unique(np.concatenate([*padded, dummies[:1]]))
        return different, [np.searchsorted(different, row) for row in padded]

    def prob(self, reports: Reports, values: Values) -> NDArray[np.object_]:
        different, padded = self._elements(values)
        chances = self.inner.prob(self._inner_reports(reports), different)
        out = np.empty((len(reports), len(padded)), dtype=object)
        for column, row in enumerate(padded):
            out[:, column] = chances[:, row].sum(axis=1) * Fraction(1, len(row))
        return out

    def log_prob(self, reports: Reports, values: Values) -> Floats:
        different, padded = self._elements(values)
        logs = self.inner.log_prob(self._inner_reports(reports), different)
        most = logs.max(axis=1, keepdims=True, initial=-1e300)
        chances = np.exp(logs - most)
        means = [chances[:, row].mean(axis=1) for row in padded]
        return np.asarray(np.log(np.stack(means, axis=1)) + most)

    def outputs(self, public: Columns | None = None) -> Reports | None:
        every = self.inner.outputs(public)
        return None if every is None else Reports(self.spec_id, public=every.public, private=every.private)

    def _fold(self, reports: Reports) -> Ints:
        return self.inner._fold(self._inner_reports(reports))

    def _support_counts(self, sketch: Sketch) -> Ints:
        whole = Sketch(self.inner.spec_id, sketch.n, sketch.counts)
        return self.inner._support_counts(whole)[: self.size]

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        return self.inner._support(self._inner_reports(reports), candidates, weights)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=Sets(Ordinal(4), most=2), oracle="GRR")
        yield cls(epsilon=2.0, domain=Sets(Ordinal(5), most=2), oracle="OLH")
        yield cls(epsilon=1.0, domain=["a", "b", "c", "d"], length=2)


def amplified_grr(epsilon: float, items: int, length: int) -> GRR:
    """The GRR over items and dummies of which one of `length` elements reports: e^eps' = l (e^eps - 1) + 1 or less.

    References
    ----------
    T. Wang, 2021, Theorem 5.2.1.
    """
    options = items + length
    other = ceil_div(TWO_64, length * (exp_floor(epsilon) - 1) + options)
    most = truth_weight(other, options)
    if most <= other:
        raise InvalidValue("epsilon", epsilon, "an epsilon that 64-bit probabilities can tell from 0")
    return GRR(epsilon=log_upper(Fraction(most, other)), domain=Ordinal(options), other=other)


def _floor(oracle: FrequencyOracle, length: int) -> float:
    """The variance of one report's estimate of an item that nobody holds."""
    moments = oracle.moments()
    return moments.false_variance * (length / (moments.true_mean - moments.false_mean)) ** 2
