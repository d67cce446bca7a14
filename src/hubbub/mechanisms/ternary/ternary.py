"""Ternary mechanisms: means and frequencies of sparse vectors over {-1, 0, 1}. Their one estimator is here.

How to write one (see `collision.py`, the shortest): subclass `TernaryMechanism`, resolve the integers in `_resolve`
(call `_resolve_shape` first), and answer

- `words`: how many 64-bit random words one report takes, whatever the value;
- `_respond(symbols, draws, rng)`: the columns of reports, from rows of symbols (2 i for +1 at position i, 2 i + 1 for
  -1, filled up with -1; at most `sparsity` of them) and those words; `rng` only for what happens once in 2^32 times;
- `rates`: the exact chances that a report supports +1 (or -1) at a position, given what is held there;
- `_fold(reports)`: how many reports support +1 (first row) and -1 (second row) at every position;
- `columns`, `ratio`, `_cases` (or `prob` and `log_prob`), `outputs`, `examples` as for any mechanism. Values come as
  users give them: `self.symbols(values)` makes rows of symbols of them.

One that cannot count supports (SUCCINCT) overrides `sketch_shape`, `_estimate`, and `answers`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.exact import ceil_div, exp_floor
from hubbub.core.noise import Noise
from hubbub.core.random import Random
from hubbub.core.sketch import Sketch
from hubbub.core.ternary import MOST_DIMENSION, as_ternary
from hubbub.mechanisms.base import Mechanism

if TYPE_CHECKING:
    from hubbub.core.influence import Influence

Quantity = Literal["mean", "frequency", "conditional"]
MOST_SPARSITY = 1 << 12
MOST_WEIGHT_BITS = 1 << 11
_CHUNK = 1 << 20  # words drawn at once


class Rates(NamedTuple):
    """The chance that a report supports a sign at a position, given what its sender holds there.

    Parameters
    ----------
    true, false, reverse
        Where it holds that sign; nothing; the other sign.
    both_held, both_missing
        That it supports both signs at once, where it holds one of them and where it holds nothing.
    """

    true: Fraction
    false: Fraction
    reverse: Fraction
    both_held: Fraction = Fraction(0)
    both_missing: Fraction = Fraction(0)


@dataclass(frozen=True, kw_only=True)
class TernaryMechanism(Mechanism):
    """Reports that support signs at positions. Three rates say all: p_true, p_false and p_reverse.

    With C+ and C- supports of the two signs at a position among n reports (Proposition 5.2 of sao2-exsub),

        mean       (C+ - C-)/n / (p_true - p_reverse)
        frequency  ((C+ + C-)/n - 2 p_false) / (p_true + p_reverse - 2 p_false)

    are unbiased, and mean/frequency is the conditional mean, of those who hold something there. Their variances follow
    from the same rates (Lemma B.1; Lemma 3 of collision-coco). How errors of two positions go together depends on how
    many people hold both, which no count tells: `Estimate.linear` states the largest variance that there could be.

    Values are rows of -1, 0 and 1, a mapping of keys to values from -1 to 1 for each person, or a `Ternary`. Real
    values are rounded on the device without bias; of more than `sparsity` entries that many are drawn, which is biased
    (`Ternary.clipping` says how much).
    """

    dimension: int
    sparsity: int
    answers: ClassVar[tuple[Quantity, ...]] = get_args(Quantity)
    whole_only: ClassVar[bool] = False
    """Whether it must see a whole vector before it can say anything of it."""
    key_value: ClassVar[Literal["no", "named", "chosen"]] = "no"
    """Whether a key-value question may name it, or also choose it where none is named and its error is smallest."""

    @classmethod
    def best_for(cls, of: Quantity, *, epsilon: float, dimension: int, sparsity: int) -> Self:
        """The mechanism with the parameters that are best for a quantity, where it has any to choose by that."""
        return cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity)

    @property
    @abstractmethod
    def words(self) -> int:
        """How many 64-bit random words one report takes."""

    @property
    @abstractmethod
    def rates(self) -> Rates:
        """The exact rates."""

    @abstractmethod
    def _respond(self, symbols: NDArray[np.int64], draws: NDArray[np.uint64], rng: Random) -> dict[str, NDArray[Any]]:
        """The columns of reports on rows of symbols, from random words."""

    def _resolve_shape(self) -> None:
        self._integer("dimension", 1, MOST_DIMENSION)
        self._integer("sparsity", 1, min(self.dimension, MOST_SPARSITY))

    def _resolve_floor(self, epsilon: float | Fraction, kept: int = 64) -> None:
        """Fill in the fields `bits` and `least`: what falls short weighs `least` beside 2^bits, at least e^-epsilon."""
        fields: Any = self
        if fields.bits == 0:
            self._set("bits", 1 + kept + int(float(epsilon) / math.log(2)))  # so that `least` keeps so many bits
        self._integer("bits", 1, MOST_WEIGHT_BITS)
        if fields.least == 0:
            self._set("least", ceil_div(1 << fields.bits, exp_floor(epsilon)))
        if fields.least == 1 << fields.bits:
            raise InvalidValue("epsilon", self.epsilon, f"an epsilon that {kept}-bit weights can tell from 0")
        self._integer("least", 1, (1 << fields.bits) - 1)

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

    # -- values -----------------------------------------------------------------------------------------------

    @cached_property
    def size(self) -> int:
        """How many vectors there are with at most `sparsity` entries."""
        return sum(math.comb(self.dimension, held) << held for held in range(self.sparsity + 1))

    def encode(self, values: Any) -> NDArray[np.int64]:
        return as_ternary(values, self.dimension).entries

    def symbols(self, values: Any) -> NDArray[np.int64]:
        """Rows of symbols of vectors that need no rounding and no clipping: what a probability is conditional on."""
        from hubbub.core.settling import settled

        return settled(self.encode(values), self.sparsity)

    def example_values(self, most: int) -> list[Any]:
        """Vectors of every number of entries in turn: short ones and full ones are found among the first few."""
        # The number of all vectors may take long to compute: pairs of positions alone are often too many.
        every = math.comb(self.dimension, min(self.sparsity, 2)) <= most and self.size <= most
        counts = [0, *range(self.sparsity, 0, -1)]
        if not every:
            counts = sorted(set(counts[:3] + counts[-1:]), key=counts.index)
        kinds = [self._vectors(count, every=every) for count in counts]
        vectors: list[Any] = []
        while kinds and len(vectors) < most:
            turn = [(kind, next(kind, None)) for kind in kinds]
            kinds = [kind for kind, vector in turn if vector is not None]
            vectors += [vector for _, vector in turn if vector is not None]
        return vectors[:most]

    def _vectors(self, count: int, *, every: bool) -> Iterator[dict[int, int]]:
        """Every vector with so many entries; or runs of positions that wrap round, with alternating signs."""
        d = self.dimension
        if every:
            for held, signs in product(combinations(range(d), count), product((1, -1), repeat=count)):
                yield dict(zip(held, signs, strict=True))
            return
        for start, sign in product(range(d if count else 1), (1, -1) if count else (1,)):
            yield {(start + k) % d: sign * (1 - 2 * (k % 2)) for k in range(count)}

    def _randomize(self, codes: NDArray[Any], rng: Random) -> dict[str, NDArray[Any]]:
        from hubbub.core.settling import settle  # no device needs it whose vectors come an entry at a time

        width = 1 + self.words
        step = max(1, _CHUNK // width)
        parts = []
        for start in range(0, max(len(codes), 1), step):
            own = codes[start : start + step]
            draws = rng.uint64(len(own), width)
            parts.append(self._respond(settle(own, draws[:, 0], self.sparsity), draws[:, 1:], rng))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    # -- the estimator ----------------------------------------------------------------------------------------

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (2, self.dimension)

    def estimate(
        self, sketch: Sketch, candidates: Any = None, *, of: Quantity = "mean", signs: bool = False
    ) -> Estimate:
        """Estimate the mean of every position, the share that holds something there, or the mean among those.

        Reports do not tell real values from signs. The variance of a mean therefore bounds that of rounding from above:
        frequency - mean^2 a report, which is attained where all who hold something hold the same value. With `signs`,
        where it is known that nobody held anything but -1, 0 or 1, there is no rounding, and the variance is exact.
        """
        if of not in self.answers:
            raise InvalidValue("of", of, f"one of {', '.join(self.answers)}")
        mean = super().estimate(sketch, candidates)
        mean = mean if signs else _with_rounding(mean)
        if of == "mean":
            return mean
        frequency = self._frequency(sketch)
        return frequency if of == "frequency" else self._conditional(mean, frequency)

    def _estimate(self, sketch: Sketch, candidates: Any = None) -> Estimate:
        if candidates is not None:
            raise InvalidValue("candidates", candidates, "nothing: every position is estimated")
        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        counts, n = sketch.counts, sketch.n
        if not (counts.min() >= 0 and counts.max() <= n):
            raise InvalidValue("counts", [int(counts.min()), int(counts.max())], f"0 to {n}, as n = {n}")
        gap = self._gap("mean")
        value = (counts[0] - counts[1]) / n / gap
        if "frequency" in self.answers:
            held = np.clip((counts.sum(axis=0) / n - 2 * float(self.p_false)) / self._gap("frequency"), 0.0, 1.0)
        else:
            held = np.minimum(np.abs(value), 1.0)  # no fewer can hold something there
        # The supports themselves tell most of a report's second moment; the noisy frequency only a small rest of it.
        both = float(self.rates.both_missing) * (1 - held) + float(self.rates.both_held) * held
        each = (counts.sum(axis=0) / n - 2 * both) / gap**2 - held
        return Estimate(
            value,
            np.maximum(each, min(self.variances("mean")) / 2) / n,
            n,
            bias=self.bias,
            kind="quantity",
            spread=np.maximum(held - value**2, 0.0) if "frequency" in self.answers else None,
            bounds=(-1.0, 1.0),
        )

    def _frequency(self, sketch: Sketch) -> Estimate:
        n = sketch.n
        value = (sketch.counts.sum(axis=0) / n - 2 * float(self.p_false)) / self._gap("frequency")
        variance = np.maximum(self.frequency_noise(n).variance(value), min(self.variances("frequency")) / n)
        # Without the noise: how errors of two positions go together depends on how many people hold both.
        return Estimate(value, variance, n, bias=self.bias)

    def _conditional(self, mean: Estimate, frequency: Estimate) -> Estimate:
        """mean/frequency with the variance of the delta method; where no frequency is seen, nothing is known.

        Cov(mean, frequency) = mean (1 - p_true - p_reverse) / (n (p_true + p_reverse - 2 p_false)).
        """
        seen = frequency.value > 0
        share = np.where(seen, frequency.value, 1.0)
        value = np.where(seen, mean.value / share, 0.0)
        covariance = mean.value * float(1 - self.p_true - self.p_reverse) / (mean.n * self._gap("frequency"))
        spread = mean.variance - 2 * value * covariance + value**2 * frequency.variance
        variance = np.where(seen, np.maximum(spread, 0.0) / share**2, np.inf)
        # A ratio of two unbiased numbers is not one.
        return Estimate(value, variance, mean.n, bias="heuristic", kind="quantity", bounds=(-1.0, 1.0))

    def frequency_noise(self, n: int) -> Noise:
        """The variance of frequencies from n reports, as a function of them; of no two held by the same people."""
        held, missing = self.variances("frequency")
        return Noise(floor=missing / n, slope=(held - missing) / n)

    # -- what a forged report can say of a position --------------------------------------------------------------

    def supports(self) -> tuple[tuple[int, int], ...]:
        """How often one report can support +1 and -1 at a position: every pair that there is."""
        nothing = 2 * self.rates.false - self.rates.both_missing < 1
        both = self.rates.both_missing > 0
        return (*([(0, 0)] if nothing else []), (1, 0), (0, 1), *([(1, 1)] if both else []))

    def influence(self, of: Quantity = "mean") -> Influence | None:
        """What one forged report can say of the mean or the frequency of a position.

        The conditional mean is a ratio, whose denominator forged reports can bring near 0: None.
        """
        if of not in self.answers:
            raise InvalidValue("of", of, f"one of {', '.join(self.answers)}")
        if of == "conditional":
            return None
        from hubbub.core.influence import Influence

        numbers = [self.stands_for(plus, minus, of) for plus, minus in self.supports()]
        return Influence(min(numbers), max(numbers), Fraction(-1 if of == "mean" else 0), Fraction(1))

    def stands_for(self, plus: int, minus: int, of: Quantity) -> Fraction:
        """The number that a report of these supports stands for, of which the estimate is the mean."""
        true, false, reverse = self.rates[:3]
        if of == "mean":
            return (plus - minus) / (true - reverse)
        return (plus + minus - 2 * false) / (true + reverse - 2 * false)

    # -- its error --------------------------------------------------------------------------------------------

    def variances(self, of: Quantity = "mean") -> tuple[float, float]:
        """The variance of one report's estimate at a position where something is held, and where nothing is."""
        return self._variances[of == "frequency"]

    @cached_property
    def _variances(self) -> tuple[tuple[float, float], tuple[float, float]]:
        true, false, reverse, both_held, both_missing = self.rates
        gap, sum_gap = true - reverse, true + reverse - 2 * false
        mean = (true + reverse - 2 * both_held - gap**2) / gap**2, (2 * false - 2 * both_missing) / gap**2
        both = float(mean[0]), float(mean[1])
        if not sum_gap:
            return both, (math.inf, math.inf)  # what is held is supported as often as what is not
        frequency = (
            (true + reverse + 2 * both_held - (true + reverse) ** 2) / sum_gap**2,
            (2 * false + 2 * both_missing - 4 * false**2) / sum_gap**2,
        )
        return both, (float(frequency[0]), float(frequency[1]))

    def mse(self, n: int = 1, *, of: Quantity = "mean", held: int | None = None, positions: int | None = None) -> float:
        """The exact mean squared error, summed over positions (Lemma B.1, Lemma 3), of people who hold `held` of them.

        All `sparsity` unless given, of the `dimension` positions unless given.
        """
        if of not in ("mean", "frequency"):
            raise InvalidValue("of", of, "mean or frequency")
        held = self.sparsity if held is None else held
        positions = self.dimension if positions is None else positions
        at_held, at_missing = self.variances(of)
        return (held * at_held + (positions - held) * at_missing) / n

    def max_error(self, n: int, beta: float = 0.05) -> float:
        """What the error of no mean exceeds, with probability at least 1 - beta (Bernstein; Theorems 5.4 and 8)."""
        if not 0 < beta < 1:
            raise InvalidValue("beta", beta, "a probability between 0 and 1")
        most = 1 / self._gap("mean") + 1  # one report's number is at most 1/gap from 0, and the truth at most 1
        log = math.log(2 * self.dimension / beta)
        first = log * most / 3
        return (first + math.sqrt(first**2 + 2 * log * n * max(self.variances("mean")))) / n

    def _gap(self, of: Quantity) -> float:
        return self._gaps[of == "frequency"]

    @cached_property
    def _gaps(self) -> tuple[float, float]:
        true, false, reverse = self.rates[:3]
        return float(true - reverse), float(true + reverse - 2 * false)


def _with_rounding(mean: Estimate) -> Estimate:
    """The mean of values that may be real: its variance bounds that of rounding, and what people differ by, together.

    Of a value v that is held, rounding has the variance 1 - v^2; over all people that and the variance of the values
    add up to frequency - mean^2, whatever the values are.
    """
    both = mean.spread if mean.spread is not None else 1 - np.minimum(mean.value**2, 1.0)
    return replace(mean, variance=mean.variance + both / mean.n, spread=np.zeros_like(mean.value))


def search_power(epsilon: float) -> float:
    """e^epsilon for choosing parameters: cut where nothing changes any more, so that no float over- or underflows.

    Example:
        >>> search_power(1.0) == math.e, search_power(1e-30) > 1, search_power(1000.0) < math.inf
        (True, True, True)
    """
    return math.exp(min(max(epsilon, 1e-6), 140.0))
