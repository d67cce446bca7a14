"""Key-value questions: for every key its mean over all people, the share who hold it, or the mean among holders."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hubbub.collection.safety import Finding
from hubbub.core.domain import KeyValue
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of
from hubbub.core.reports import Floats, Sketch
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.ternary.ternary import Quantity, TernaryMechanism
from hubbub.planning.minimax import entry_floor, shares_floor
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.views.basic import View
from hubbub.protocols.views.sets import Held
from hubbub.questions.base import Example
from hubbub.questions.consistent_shares import SharesQuestion
from hubbub.questions.shape import Shape
from hubbub.questions.statistic import StatisticQuestion
from hubbub.statistics.influence import Influence

_BOTH: tuple[Quantity, Quantity] = ("mean", "frequency")
_CLEAR = 1.96
"""How many standard errors above zero a key's share must be before a mean among its holders means anything."""


@dataclass(frozen=True)
class KeyNumbers(Statistic):
    """One number for every key of a key-value field, by the ternary mechanism with the smallest error, or a named one.

    Let v be the number on a scale from -1 to 1, h = (high - low)/2, and c the middle of the range. A ternary mechanism
    estimates m, the mean of v where those without the key count as 0, and f, the share who hold the key. Then

        mean         c f + h m     the mean over all people, those without the key counted as 0
        frequency    f             the share who hold the key
        conditional  c + h m/f     the mean among those who hold it; unknown where f is not clearly above 0

    Where c = 0, means do not need f: NetSub then has the smallest error, or NetSeed in fewer bytes. Otherwise ExSub
    has, or NetSub where m has the larger weight.

    Parameters
    ----------
    domain
        The field's keys and range.
    sparsity
        How many keys a report covers: of a person with more, that many are drawn at random, which is biased.
    of
        Which of the three.
    ternary
        A name of `ternary_mechanisms()`; None takes the best.
    """

    domain: KeyValue
    sparsity: int
    of: Quantity = "mean"
    ternary: str | None = None

    def __post_init__(self) -> None:
        if self.of not in get_args(Quantity):
            raise InvalidValue("of", self.of, f"one of {', '.join(get_args(Quantity))}")
        sparsity = self.sparsity
        if isinstance(sparsity, bool) or not isinstance(sparsity, int) or not 1 <= sparsity <= self.domain.most:
            raise InvalidValue("sparsity", sparsity, f"an integer from 1 to {self.domain.most}, the most that is held")
        if self.ternary is None:
            return
        known = ternary_mechanisms()
        if self.ternary not in known:
            raise InvalidValue("mechanism", self.ternary, f"one of {', '.join(known)}")
        if self._needs_shares and "frequency" not in known[self.ternary].answers:
            able = (name for name, kind in known.items() if "frequency" in kind.answers)
            raise InvalidValue("mechanism", self.ternary, f"one that tells shares, which are needed: {', '.join(able)}")

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.domain.keys)

    @property
    def kind(self) -> Literal["share", "quantity"]:  # type: ignore[override]
        """Shares, or numbers in the field's own unit."""
        return "share" if self.of == "frequency" else "quantity"

    @property
    def view(self) -> View:  # type: ignore[override]
        """What is held, on a scale from -1 to 1."""
        return Held(self.size, self.domain.low, self.domain.high)

    @property
    def _middle(self) -> float:
        return (self.domain.low + self.domain.high) / 2

    @property
    def _half(self) -> float:
        return (self.domain.high - self.domain.low) / 2

    @property
    def _needs_shares(self) -> bool:
        return self.of != "mean" or self._middle != 0

    def mechanism(self, units: int) -> TernaryMechanism:
        needs_shares, (mean_weight, share_weight) = self._needs_shares, self._weights
        return best_ternary(self.ternary, units, self.size, self.sparsity, needs_shares, mean_weight, share_weight)

    @property
    def _weights(self) -> tuple[float, float]:
        """The weights of the variances of m and of f in the error; for the mean among holders, at most equal ones."""
        if self.of == "mean":
            return self._half**2, self._middle**2
        return float(self.of == "conditional"), 1.0

    def read(self, mechanism: ReportFormat, sketch: Sketch, candidates: Any = None) -> Estimate:
        assert isinstance(mechanism, TernaryMechanism)
        if self.of == "frequency":
            return mechanism.estimate(sketch, of="frequency")
        if self.of == "conditional":
            share = mechanism.estimate(sketch, of="frequency")
            return self._conditional(mechanism.estimate(sketch, of="conditional"), share)
        mean, n = mechanism.estimate(sketch), sketch.n
        c, h = self._middle, self._half
        value, variance = h * mean.value, h**2 * mean.variance
        if self._needs_shares:
            share = mechanism.estimate(sketch, of="frequency")
            true, false, reverse = (float(rate) for rate in mechanism.rates[:3])
            covariance = mean.value * (1 - true - reverse) / (true + reverse - 2 * false) / n  # Cov(m, f)
            value, variance = value + c * share.value, variance + c**2 * share.variance + 2 * c * h * covariance
        floor = h**2 * mean.variance / 4  # estimated second moments may add up to less than any can have
        low, high = min(self.domain.low, 0.0), max(self.domain.high, 0.0)
        spread = (high - low) ** 2 / 4  # the most that it can be
        return Estimate(value, np.maximum(variance, floor), n, bias=mean.bias, kind="quantity", spread=spread)

    def _conditional(self, ratio: Estimate, share: Estimate) -> Estimate:
        value = self._middle + self._half * ratio.value
        stderr = self._half * ratio.stderr
        # The ratio of two noisy numbers means something only where the lower one is clear of zero.
        known = share.value > _CLEAR * share.stderr
        known &= (value - _CLEAR * stderr > self.domain.low) | (value + _CLEAR * stderr < self.domain.high)
        value, variance = np.where(known, value, np.nan), np.where(known, stderr**2, np.inf)
        spread = self._half**2 / np.where(known, share.value, 1.0)  # the most that it can be, of those who hold the key
        return Estimate(value, variance, ratio.n, bias="heuristic", kind="quantity", spread=spread)

    def error(self, units: int, n: float, like: Floats) -> float:
        """As if everyone held `sparsity` keys, and all keys were held alike."""
        mechanism = self.mechanism(units)
        mean, share = (mechanism.mse(of=of) / self.size / n for of in _BOTH)  # a share's may be infinite
        if self.of == "frequency":
            return share
        if self.of == "mean":
            return float(self._half**2 * mean + (self._middle**2 * share if self._needs_shares else 0.0))
        return float(self._half**2 * mean / (self.sparsity / self.size) ** 2)

    def spread(self, like: Floats) -> float:
        share = self.sparsity / self.size
        return share * (1 - share) if self.of == "frequency" else 0.0

    def influence(self, mechanism: TernaryMechanism) -> Influence:
        """What one forged report can say of a key's share, or of what people have of it."""
        low, high = Fraction(self.domain.low), Fraction(self.domain.high)
        middle, half = (low + high) / 2, (high - low) / 2
        if self.of == "frequency":
            middle, half, low, high = Fraction(1), Fraction(0), Fraction(0), Fraction(1)
        numbers = [
            (middle and middle * mechanism.rates.stands_for(plus, minus, "frequency"))
            + (half and half * mechanism.rates.stands_for(plus, minus, "mean"))
            for plus, minus in mechanism.rates.supports()
        ]
        # Somebody without the key counts as 0.
        return Influence(min(numbers), max(numbers), min(low, Fraction(0)), max(high, Fraction(0)))


def ternary_mechanisms() -> dict[str, type[TernaryMechanism]]:
    """The mechanisms that a key-value question may name."""
    kinds = {name: kind for name, kind in MECHANISMS.usable().items() if issubclass(kind, TernaryMechanism)}
    return {name: kind for name, kind in kinds.items() if kind.key_value != "no"}


@lru_cache(maxsize=256)
def best_ternary(
    name: str | None,
    units: int,
    dimension: int,
    sparsity: int,
    needs_shares: bool,
    mean_weight: float,
    share_weight: float,
) -> TernaryMechanism:
    """The named mechanism, with parameters for the quantity that has the larger error; else the best mechanism."""
    options: dict[str, Any] = {"epsilon": epsilon_of(units), "dimension": dimension, "sparsity": sparsity}
    if name is not None:
        return ternary_mechanisms()[name].best_for("frequency" if needs_shares else "mean", **options)
    kinds = [kind for kind in ternary_mechanisms().values() if kind.key_value == "chosen"]
    mechanisms = [kind.best_for(of, **options) for kind in kinds for of in _BOTH[::-1]]

    def error_and_size(mechanism: TernaryMechanism) -> tuple[float, int]:
        error = mean_weight * mechanism.mse() + (share_weight * mechanism.mse(of="frequency") if needs_shares else 0.0)
        return float(f"{error:.9g}"), mechanism.report_bytes

    return min(mechanisms, key=error_and_size)


ARITHMETIC = 1
"""The version of what is asked and released: it rises with every change, and a new era begins."""


@dataclass(frozen=True, kw_only=True)
class KeyValueQuestion(SharesQuestion, StatisticQuestion):
    """One number for each key of a key-value field: every step costs epsilon, for all keys together.

    Parameters
    ----------
    of
        "mean" (the default: the mean over all people, those without the key counted as 0), "frequency" (the share who
        hold the key) or "conditional" (the mean among holders).
    sparsity
        How many keys a report covers; unless given, as many as a person may hold.

    Example:
        >>> from hubbub.questions import Setting
        >>> setting = Setting("liked", {"ratings": KeyValue(["alien", "brazil"], low=-1, high=1, most=1)}, 3600)
        >>> question = KeyValueQuestion(field="ratings", epsilon=1.0).bound(setting)
        >>> question.labels(), question.shape().form
        (('alien', 'brazil'), 'means')
    """

    kind: ClassVar[str] = "keyvalue"
    in_groups: ClassVar[bool] = True
    of: Quantity | None = None
    sparsity: int | None = None

    @classmethod
    def examples(cls) -> Iterator[Example]:
        ratings = {"ratings": KeyValue(("alien", "brazil", "casino"), low=-1, high=1, most=2)}
        yield cls(field="ratings", epsilon=2.0), ratings
        yield cls(field="ratings", epsilon=2.0, of="frequency", consistency="auto"), ratings

    def statistic(self) -> KeyNumbers:
        domain = self.setting.domain
        if not isinstance(domain, KeyValue):
            raise InvalidValue("field", self.field, "a field of kind keyvalue: only such have keys")
        sparsity = domain.most if self.sparsity is None else self.sparsity
        return KeyNumbers(domain, sparsity=sparsity, of=self.of or "mean", ternary=self.mechanism)

    @property
    def arithmetic(self) -> int:
        return ARITHMETIC

    def labels(self) -> tuple[str, ...]:
        return self.statistic().domain.keys

    def least_error(self, n: int) -> float | None:
        domain = self.setting.domain
        if not isinstance(domain, KeyValue) or self.of == "conditional":
            return None
        if self.of == "frequency":
            size, most = len(domain.keys), self.mechanism_for().sparsity
            return math.sqrt(shares_floor(epsilon=self.epsilon, size=size, n=n, most=most) / size)
        return (domain.high - domain.low) / 2 * entry_floor(self.mechanism_for(), n)

    def shape(self) -> Shape:
        statistic, adds_up = self.statistic(), self.of != "conditional" and self.setting.groups == 1
        if statistic.kind == "share":
            return Shape(form="shares", size=statistic.size, adds_up=adds_up)
        low, high = statistic.domain.low, statistic.domain.high
        if self.of != "conditional":  # whoever does not hold a key counts as 0
            low, high = min(low, 0.0), max(high, 0.0)
        return Shape(form="means", size=statistic.size, unit=self.field, low=low, high=high, adds_up=adds_up)

    def sums_to_one(self) -> bool:
        return False

    def knows_noise(self) -> bool:
        return False  # how two keys go together depends on how many people hold both

    def unbiased_steps(self) -> bool:
        return self.of != "conditional" and super().unbiased_steps()

    def assumes(self) -> str:
        return f"every step, if all hold {self.statistic().sparsity} keys, and all keys are held alike"

    def influence(self) -> Influence | str:
        if self.of == "conditional":
            return "the mean among holders is a ratio, and forged reports can bring its denominator near 0"
        return self.statistic().influence(self.mechanism_for())

    def default_title(self) -> str:
        return f"Of {self.field}: {_TITLES[self.of or 'mean']}?"

    def covers(self) -> str:
        return "It covers all keys together: which of them are held, and with what numbers."

    def findings(self) -> Iterator[Finding]:
        yield from super().findings()
        statistic = self.statistic()
        if statistic.sparsity < statistic.domain.most:
            yield Finding(
                "warning",
                "sparsity",
                f"a device may hold {statistic.domain.most:,} keys, and reports on {statistic.sparsity:,}: if it holds "
                "more, it draws that many at random, so that answers about keys held with many others are too small",
            )


_TITLES = {
    "mean": "how much of each key have people on average",
    "frequency": "how many have each key",
    "conditional": "what is the mean of each key among those who have it",
}
