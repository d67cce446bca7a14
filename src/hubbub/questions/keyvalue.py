"""Key-value questions: for every key its mean over all people, the share who hold it, or the mean among holders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from hubbub.collection.finding import Finding
from hubbub.collection.setting import Setting
from hubbub.core.domain import KeyValue
from hubbub.core.errors import InvalidValue
from hubbub.core.influence import Influence
from hubbub.mechanisms.ternary.rates import Quantity
from hubbub.questions.key_numbers import KeyNumbers
from hubbub.questions.shapes import Shape
from hubbub.questions.statistic import StatisticQuestion

ARITHMETIC = 2
"""The version of what is asked and released: 2 asks by the net rule where that errs least."""


@dataclass(frozen=True, kw_only=True)
class KeyValueQuestion(StatisticQuestion):
    """One number for each key of a key-value field: every step costs epsilon, for all keys together.

    Parameters
    ----------
    of
        "mean" (the default: the mean over all people, those without the key counted as 0), "frequency" (the share who
        hold the key) or "conditional" (the mean among holders).
    sparsity
        How many keys a report covers; unless given, as many as a person may hold.

    Example:
        >>> question = KeyValueQuestion(field="ratings", epsilon=1.0)
        >>> setting = Setting("liked", {"ratings": KeyValue(["alien", "brazil"], low=-1, high=1, most=1)}, 3600)
        >>> question.labels(setting), question.shape(setting).form
        (('alien', 'brazil'), 'means')
    """

    kind: ClassVar[str] = "keyvalue"
    of: Quantity | None = None
    sparsity: int | None = None

    def statistic(self, setting: Setting) -> KeyNumbers:
        domain = setting.domain
        if not isinstance(domain, KeyValue):
            raise InvalidValue("field", self.field, "a field of kind keyvalue: only such have keys")
        sparsity = domain.most if self.sparsity is None else self.sparsity
        return KeyNumbers(domain, sparsity=sparsity, of=self.of or "mean", ternary=self.mechanism, hash=setting.hash)

    @property
    def arithmetic(self) -> int:
        return ARITHMETIC

    def labels(self, setting: Setting) -> tuple[str, ...]:
        return self.statistic(setting).domain.keys

    def shape(self, setting: Setting) -> Shape:
        statistic, adds_up = self.statistic(setting), self.of != "conditional"
        if statistic.kind == "share":
            return Shape(form="shares", size=statistic.size, adds_up=adds_up)
        low, high = statistic.domain.low, statistic.domain.high
        if self.of != "conditional":  # whoever does not hold a key counts as 0
            low, high = min(low, 0.0), max(high, 0.0)
        return Shape(form="means", size=statistic.size, unit=self.field, low=low, high=high, adds_up=adds_up)

    def unbiased_steps(self, setting: Setting) -> bool:
        return self.of != "conditional" and super().unbiased_steps(setting)

    def assumes(self, setting: Setting) -> str:
        return f"every step, if all hold {self.statistic(setting).sparsity} keys, and all keys are held alike"

    def influence(self, setting: Setting) -> Influence | str:
        if self.of == "conditional":
            return "the mean among holders is a ratio, and forged reports can bring its denominator near 0"
        return self.statistic(setting).influence(self.mechanism_for(setting))

    def default_title(self, setting: Setting) -> str:
        return f"Of {self.field}: {_TITLES[self.of or 'mean']}?"

    def covers(self, setting: Setting) -> str:
        return "It covers all keys together: which of them are held, and with what numbers."

    def findings(self, setting: Setting) -> Iterator[Finding]:
        statistic = self.statistic(setting)
        if statistic.sparsity < statistic.domain.most:
            yield Finding(
                "warning",
                "sparsity",
                f"a device may hold {statistic.domain.most:,} keys, and reports on {statistic.sparsity:,}: if it holds "
                "more, it draws that many at random, so that answers about keys held beside many others are too small",
            )


_TITLES = {
    "mean": "how much of each key have people on average",
    "frequency": "how many have each key",
    "conditional": "what is the mean of each key among those who have it",
}
