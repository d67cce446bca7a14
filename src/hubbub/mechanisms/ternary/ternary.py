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

The estimator (`estimator.py`) works from `rates`. A mechanism whose reports do not support signs (SUCCINCT) overrides
`sketch_shape`, `_estimate`, and `answers`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from hubbub.core.errors import InvalidValue
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.ternary.rates import Quantity, Rates
from hubbub.mechanisms.ternary.sparse_vectors import SparseVectors

if TYPE_CHECKING:  # a device estimates nothing
    from hubbub.core.estimate import Estimate
    from hubbub.core.influence import Influence
    from hubbub.core.noise import Noise


@dataclass(frozen=True, kw_only=True)
class TernaryMechanism(SparseVectors):
    """Reports that support signs at positions; three rates describe them: p_true, p_false and p_reverse.

    With C+ and C- supports of the two signs at a position among n reports (Proposition 5.2 of sao2-exsub),

        mean       (C+ - C-)/n / (p_true - p_reverse)
        frequency  ((C+ + C-)/n - 2 p_false) / (p_true + p_reverse - 2 p_false)

    are unbiased, and mean/frequency is the conditional mean: the mean among people who hold something there. Their
    variances follow from the same rates (Lemma B.1; Lemma 3 of collision-coco). The covariance of two positions depends
    on how many people hold both, which no count tells: `Estimate.linear` states the largest variance possible.
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
        self, sketch: Sketch, candidates: Any = None, *, of: Quantity = "mean", signs: bool = False
    ) -> Estimate:
        """Estimate, for every position, the mean, the share of people that hold something, or the mean among them.

        Reports do not tell whether values were rounded. So the stated variance of a mean includes the largest that
        rounding can have: frequency - mean^2 a report, attained where all who hold something hold the same value. With
        `signs`, which says that everyone held -1, 0 or 1, nothing was rounded, and the stated variance is exact.
        """
        if of not in self.answers:
            raise InvalidValue("of", of, f"one of {', '.join(self.answers)}")
        from hubbub.mechanisms.ternary.estimator import estimate_conditional_means, estimate_frequencies, with_rounding

        mean = super().estimate(sketch, candidates)
        mean = mean if signs else with_rounding(mean)
        if of == "mean":
            return mean
        frequency = estimate_frequencies(self, sketch)
        return frequency if of == "frequency" else estimate_conditional_means(self, mean, frequency)

    def _estimate(self, sketch: Sketch, candidates: Any = None) -> Estimate:
        if candidates is not None:
            raise InvalidValue("candidates", candidates, "nothing: every position is estimated")
        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        from hubbub.mechanisms.ternary.estimator import estimate_means

        return estimate_means(self, sketch)

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
        from hubbub.core.influence import Influence

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
