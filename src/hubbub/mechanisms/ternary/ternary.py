"""Ternary mechanisms: means and frequencies of sparse vectors over {-1, 0, 1}. Their contract.

How to write one (see `collision.py`, the shortest): subclass `TernaryMechanism`, resolve the integers in `_resolve`
(call `_resolve_shape` first), and implement

- `words`: how many 64-bit random words one report takes, whatever the value;
- `_respond(symbols, draws, rng)`: the columns of reports, from rows of symbols (2 i for +1 at position i, 2 i + 1 for
  -1, filled up with -1; at most `sparsity` of them) and those words; `rng` only for what happens once in 2^32 times;
- `rates`: the exact chances that a report supports +1 (or -1) at a position, given what its sender holds there;
- `_fold(reports)`: how many reports support +1 (first row) and -1 (second row) at every position;
- `columns`, `ratio`, `_cases` (or `prob` and `log_prob`), `outputs`, `examples` as for any mechanism. Values come as
  users give them: `self.symbols(values)` makes rows of symbols of them.

The estimator (`estimator.py`, which devices do not load) works from `rates`. A mechanism whose reports do not support
signs (SUCCINCT) overrides `sketch_shape`, `_estimate`, and `answers`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Ints, Sketch, Words
from hubbub.mechanisms.base import Mechanism, round_robin
from hubbub.mechanisms.ternary.vectors import MOST_DIMENSION, as_ternary, exact_symbols, symbols_of_rows
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.core.estimate import Estimate
    from hubbub.core.noise import Noise
    from hubbub.statistics.influence import Influence

MOST_SPARSITY = 1 << 12
_CHUNK = 1 << 20  # words drawn at once

Quantity = Literal["mean", "frequency", "conditional"]


class Rates(NamedTuple):
    """The chance that a report supports a sign at a position, given what its sender holds there.

    Parameters
    ----------
    true, false, reverse
        The chance where the sender holds that sign, where the sender holds nothing, and where the sender holds the
        opposite sign.
    both_held, both_missing
        The chance that the report supports both signs at once, where the sender holds one of them and where the sender
        holds nothing.
    """

    true: Fraction
    false: Fraction
    reverse: Fraction
    both_held: Fraction = Fraction(0)
    both_missing: Fraction = Fraction(0)

    def gap(self, of: Quantity) -> Fraction:
        """The denominator of the estimator: how far supports differ between the values that it has to tell apart."""
        return self.true - self.reverse if of == "mean" else self.true + self.reverse - 2 * self.false

    def supports(self) -> tuple[tuple[int, int], ...]:
        """The pairs that a report's supports of +1 and of -1 at one position can be."""
        neither = 2 * self.false - self.both_missing < 1
        both = self.both_missing > 0
        return (*([(0, 0)] if neither else []), (1, 0), (0, 1), *([(1, 1)] if both else []))

    def stands_for(self, plus: int, minus: int, of: Quantity) -> Fraction:
        """The number that a report with these supports contributes; the estimate is the mean of these numbers."""
        return (plus - minus if of == "mean" else plus + minus - 2 * self.false) / self.gap(of)

    def variances(self, of: Quantity) -> tuple[float, float]:
        """The variance of one report's number at a position where something is held, and where nothing is held.

        Infinite where a position is supported equally often whether something is held there or not.
        """
        gap, supported = self.gap(of), self.true + self.reverse
        if not gap:
            return math.inf, math.inf
        if of == "mean":
            held, missing = supported - 2 * self.both_held - gap**2, 2 * self.false - 2 * self.both_missing
        else:
            held = supported + 2 * self.both_held - supported**2
            missing = 2 * self.false + 2 * self.both_missing - 4 * self.false**2
        return float(held / gap**2), float(missing / gap**2)


@dataclass(frozen=True, kw_only=True)
class SparseVectors(Mechanism):
    """Values are vectors of `dimension` entries, of which at most `sparsity` are not 0.

    A value is a row of -1, 0 and 1, a mapping of keys to numbers from -1 to 1, or a row of a `Ternary`. The device
    rounds real numbers without bias. Of a vector with more than `sparsity` entries it draws that many, which is biased
    (`Ternary.clipping` says by how much). The randomiser then reads symbols: 2 i for +1 at position i, 2 i + 1 for -1.
    """

    linkable = "never"
    dimension: int
    sparsity: int

    @property
    @abstractmethod
    def words(self) -> int:
        """How many 64-bit random words one report takes, whatever the value."""

    @abstractmethod
    def _respond(self, symbols: Ints, draws: Words, rng: Random) -> dict[str, Array]:
        """The columns of reports on rows of symbols (filled up with -1), from `words` random words a row."""

    def _resolve_shape(self) -> None:
        self._integer("dimension", 1, MOST_DIMENSION)
        self._integer("sparsity", 1, min(self.dimension, MOST_SPARSITY))

    @cached_property
    def size(self) -> int:
        """How many vectors there are with at most `sparsity` entries."""
        return sum(math.comb(self.dimension, entries) << entries for entries in range(self.sparsity + 1))

    def encode(self, values: Values) -> Ints:
        return as_ternary(values, self.dimension).entries

    def symbols(self, values: Values) -> Ints:
        """Rows of symbols of vectors that need no rounding and no clipping: what a probability is conditional on."""
        return exact_symbols(self.encode(values), self.sparsity)

    def example_values(self, most: int) -> list[Any]:
        """Vectors of every number of entries in turn: the first few are short ones and full ones."""
        # The number of all vectors may take long to compute: pairs of positions alone are often too many.
        every = math.comb(self.dimension, min(self.sparsity, 2)) <= most and self.size <= most
        counts = [0, *range(self.sparsity, 0, -1)]
        if not every:
            counts = sorted(set(counts[:3] + counts[-1:]), key=counts.index)
        return round_robin([self._vectors(count, every=every) for count in counts], most)

    def _vectors(self, count: int, *, every: bool) -> Iterator[dict[int, int]]:
        """Every vector with a given number of entries; or runs of positions that wrap round, with alternating signs."""
        d = self.dimension
        if every:
            for positions, signs in product(combinations(range(d), count), product((1, -1), repeat=count)):
                yield dict(zip(positions, signs, strict=True))
            return
        for start, sign in product(range(d if count else 1), (1, -1) if count else (1,)):
            yield {(start + k) % d: sign * (1 - 2 * (k % 2)) for k in range(count)}

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        width = 1 + self.words
        step = max(1, _CHUNK // width)
        parts = []
        for start in range(0, max(len(codes), 1), step):
            chunk = codes[start : start + step]
            draws = rng.uint64(len(chunk), width)
            parts.append(self._respond(symbols_of_rows(chunk, draws[:, 0], self.sparsity), draws[:, 1:], rng))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True, kw_only=True)
class TernaryMechanism(SparseVectors):
    """Reports that support signs at positions; three rates describe them: p_true, p_false and p_reverse.

    With C+ and C- supports of the two signs at a position among n reports (S. Wang, Li, Xin et al.,
    2023, Proposition 5.2),

        mean       (C+ - C-)/n / (p_true - p_reverse)
        frequency  ((C+ + C-)/n - 2 p_false) / (p_true + p_reverse - 2 p_false)

    are unbiased, and mean/frequency is the conditional mean: the mean among people who hold something there. Their
    variances follow from the same rates (Lemma B.1 there; S. Wang, Li, Li et al., 2023, Lemma 3). The covariance of two
    positions depends on how many people hold both, which no count tells: `Estimate.linear` states the largest variance
    possible.
    """

    answers: ClassVar[tuple[Quantity, ...]] = get_args(Quantity)
    whole_only: ClassVar[bool] = False
    """Whether a device must know its whole vector before it can report anything of it."""
    key_value: ClassVar[Literal["no", "named", "chosen"]] = "no"
    """Whether a key-value question may use the mechanism: no; if it is named; or also if it has the smallest error."""

    @classmethod
    def best_for(cls, of: Quantity, *, epsilon: float, dimension: int, sparsity: int) -> Self:
        """The mechanism with the parameters of the smallest error of a quantity; overridden where there is a choice."""
        return cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity)

    @property
    @abstractmethod
    def rates(self) -> Rates:
        """The exact rates."""

    @property
    def p_true(self) -> Fraction:
        """The chance that a report supports the sign that is held."""
        return self.rates.true

    @property
    def p_false(self) -> Fraction:
        """The chance that a report supports a sign where nothing is held."""
        return self.rates.false

    @property
    def p_reverse(self) -> Fraction:
        """The chance that a report supports the sign opposite to the one that is held."""
        return self.rates.reverse

    # -- the estimator ----------------------------------------------------------------------------------------

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (2, self.dimension)

    def estimate(
        self, sketch: Sketch, candidates: Values | None = None, *, of: Quantity = "mean", signs: bool = False
    ) -> Estimate:
        """Estimate, for every position, the mean, the share of people that hold something, or the mean among them.

        Reports do not tell whether values were rounded. So the stated variance of a mean includes the largest that
        rounding can have: frequency - mean^2 a report, attained where all who hold something hold the same value. With
        `signs`, which says that everyone held -1, 0 or 1, nothing was rounded, and the stated variance is exact.
        """
        if of not in self.answers:
            raise InvalidValue("of", of, f"one of {', '.join(self.answers)}")
        from hubbub.mechanisms.ternary.estimator import conditional_means, frequencies, with_rounding

        mean = super().estimate(sketch, candidates)
        mean = mean if signs else with_rounding(mean)
        if of == "mean":
            return mean
        frequency = frequencies(self, sketch)
        return frequency if of == "frequency" else conditional_means(self, mean, frequency)

    def _estimate(self, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        if candidates is not None:
            raise InvalidValue("candidates", candidates, "nothing: every position is estimated")
        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        from hubbub.mechanisms.ternary.estimator import means

        return means(self, sketch)

    def frequency_noise(self, n: int) -> Noise:
        """The variance of frequencies from n reports, as a function of them, where nobody holds two positions."""
        from hubbub.core.noise import Noise

        held, missing = self.variances("frequency")
        return Noise(floor=missing / n, slope=(held - missing) / n)

    # -- forged reports ---------------------------------------------------------------------------------------

    def influence(self, of: Quantity = "mean") -> Influence | None:
        """How far one forged report can move the mean or the frequency of a position.

        None for the conditional mean: it is a ratio, and forged reports can bring its denominator near 0.
        """
        if of not in self.answers:
            raise InvalidValue("of", of, f"one of {', '.join(self.answers)}")
        if of == "conditional":
            return None
        from hubbub.statistics.influence import Influence

        numbers = [self.rates.stands_for(plus, minus, of) for plus, minus in self.rates.supports()]
        return Influence(min(numbers), max(numbers), Fraction(-1 if of == "mean" else 0), Fraction(1))

    # -- its error --------------------------------------------------------------------------------------------

    def variances(self, of: Quantity = "mean") -> tuple[float, float]:
        """The variance of one report's estimate at a position where its sender holds something, and where not."""
        return self._variances[of == "frequency"]

    @cached_property
    def _variances(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return self.rates.variances("mean"), self.rates.variances("frequency")

    def mse(self, n: int = 1, *, of: Quantity = "mean", held: int | None = None, positions: int | None = None) -> float:
        """The exact mean squared error, summed over positions (Lemma B.1, Lemma 3).

        Everyone holds something at `held` of the `positions`; these are `sparsity` and `dimension` unless given.
        """
        if of not in ("mean", "frequency"):
            raise InvalidValue("of", of, "mean or frequency")
        held = self.sparsity if held is None else held
        positions = self.dimension if positions is None else positions
        at_held, at_missing = self.variances(of)
        return (held * at_held + (positions - held) * at_missing) / n

    def max_error(self, n: int, beta: float = 0.05) -> float:
        """A bound that all errors of means stay below with probability 1 - beta (Bernstein; Theorems 5.4 and 8)."""
        if not 0 < beta < 1:
            raise InvalidValue("beta", beta, "a probability between 0 and 1")
        most = 1 / self.gap("mean") + 1  # one report's number is at most 1/gap from 0, and the truth at most 1
        log = math.log(2 * self.dimension / beta)
        first = log * most / 3
        return (first + math.sqrt(first**2 + 2 * log * n * max(self.variances("mean")))) / n

    def gap(self, of: Quantity) -> float:
        """`Rates.gap`, as a float."""
        return self._gaps[of == "frequency"]

    @cached_property
    def _gaps(self) -> tuple[float, float]:
        return float(self.rates.gap("mean")), float(self.rates.gap("frequency"))
