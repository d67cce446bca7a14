"""Histograms: the share of each value, or of some texts, asked of everyone at every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.setting import Finding, Setting
from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of
from hubbub.mechanisms.frequency.rappor import Rappor
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.views.basic import View, Whole
from hubbub.questions.base import Example, Question, Shape, shares_shape
from hubbub.questions.shares import ItemShares, Shares, shares_labels, shares_read, shares_title
from hubbub.questions.statistic import StatisticQuestion
from hubbub.statistics.influence import Influence


@dataclass(frozen=True)
class TextShares(Statistic):
    """The share of each candidate among any text, by RAPPOR's Bloom filters; its error has no formula."""

    domain: Strings
    candidates: tuple[str, ...]
    view: View = Whole()  # noqa: RUF009 - frozen

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many candidates there are."""
        return len(self.candidates)

    def mechanism(self, units: int) -> Rappor:
        return Rappor(epsilon=epsilon_of(units), domain=self.domain)

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        return float("nan")

    def spread(self, like: NDArray[np.float64]) -> float:
        return float("nan")


@dataclass(frozen=True, kw_only=True)
class HistogramQuestion(StatisticQuestion):
    """How common each value of a field is, or each item of a field of sets: every step costs epsilon.

    Parameters
    ----------
    of
        What of the field: "size" asks for the size of a set instead of its items; "cells", for a numeric field, is what
        is asked anyway.
    candidates
        Of a field of strings: the texts whose shares are estimated.
    keep_reports
        Whether the server keeps single reports until the retention is over, instead of their sum alone: then other
        candidates can be asked for later, over any steps.

    Example:
        >>> from hubbub import Categorical
        >>> question = HistogramQuestion(field="theme", epsilon=1.0)
        >>> setting = Setting("popular", {"theme": Categorical(["light", "dark"])}, 3600)
        >>> question.made_by(setting), question.labels(setting)
        ('GRR', ('light', 'dark', '(none)'))
    """

    kind: ClassVar[str] = "histogram"
    of: str | None = None
    candidates: tuple[str, ...] = ()
    keep_reports: bool = False

    @classmethod
    def examples(cls) -> Iterator[Example]:
        theme, plugins = Categorical(["light", "dark"]), Sets(Categorical(["a", "b", "c", "d"]), most=3)
        yield cls(field="theme", epsilon=1.0), {"theme": theme}
        yield cls(field="seconds", epsilon=1.0), {"seconds": Numeric(0, 20, cells=4)}
        yield cls(field="plugins", epsilon=1.0), {"plugins": plugins}
        yield cls(field="plugins", epsilon=1.0, of="size"), {"plugins": plugins}
        yield cls(field="word", epsilon=4.0, candidates=("yes", "no")), {"word": Strings(longest=16)}
        yield cls.make(cls.kind, field="theme", by=("level",), epsilon=2.0), {"theme": theme, "level": Ordinal(2)}

    @classmethod
    def reading(cls, keys: Mapping[str, Any]) -> type[Question]:
        from hubbub.questions.breakdown import SharesByGroup

        return SharesByGroup if "by" in keys else cls

    @property
    def keeps(self) -> bool:
        return self.keep_reports

    def takes_fakes(self, setting: Setting) -> bool:
        # Whoever asks kept reports about other candidates would take fakes for people's.
        from hubbub.shuffle.report_numbers import has_uniform_reports

        return not self.keeps and has_uniform_reports(self.mechanism_for(setting))

    def statistic(self, setting: Setting) -> Statistic:
        domain = setting.domain
        if bool(self.candidates) != isinstance(domain, Strings):
            raise InvalidValue("candidates", self.candidates, "at least one for a field of strings, none for any other")
        if isinstance(domain, Strings):
            return self._text_shares(domain)
        if self._of_items(domain):
            return ItemShares(domain, named=self.mechanism)
        codes, view = shares_read(domain, self.kind, self.of)
        return Shares(codes, oracle=self.mechanism, view=view)

    def _of_items(self, domain: Domain) -> TypeGuard[Sets]:
        """Whether it asks which items of a set people hold."""
        return isinstance(domain, Sets) and self.of is None

    def _text_shares(self, domain: Strings) -> TextShares:
        if self.of is not None:
            raise InvalidValue("of", self.of, "nothing, for a field of kind strings")
        if self.mechanism not in (None, "Rappor"):
            raise InvalidValue("mechanism", self.mechanism, "Rappor")
        try:
            codes = domain.encode(self.candidates)
        except InvalidValue as error:
            raise InvalidValue("candidates", error.value, error.allowed) from None
        if len(set(codes.tolist())) < len(self.candidates):
            raise InvalidValue("candidates", self.candidates, "texts that differ from each other")
        return TextShares(domain, self.candidates)

    def protocol(self, setting: Setting, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        from hubbub.protocols.steady import steady

        candidates = self.candidates or None
        return steady(self.statistic(setting), epsilon=self.epsilon, candidates=candidates, memory=memory)

    def labels(self, setting: Setting) -> tuple[str, ...] | None:
        domain = setting.domain
        if self._of_items(domain):
            labels = domain.items.symbol_labels()
            return None if labels is None else labels[:-1]  # who recorded nothing holds no item
        return self.candidates or shares_labels(domain)

    def shape(self, setting: Setting) -> Shape:
        domain = setting.domain
        if self._of_items(domain):
            return shares_shape(domain.items, self.statistic(setting).size, adds_up=True)
        return shares_shape(setting.domain, self.statistic(setting).size, adds_up=True)

    def forecast(self, setting: Setting, n: int) -> float | None:
        return None if self.candidates else super().forecast(setting, n)

    def assumes(self, setting: Setting) -> str:
        if self.candidates:
            return "no formula: candidates share bits and are separated by regression"
        if self._of_items(setting.domain):
            return "every step, if people hold half as many items as they may"
        return super().assumes(setting)

    def typical(self, setting: Setting) -> NDArray[np.float64]:
        statistic = self.statistic(setting)
        if isinstance(statistic, ItemShares):
            return np.full(statistic.size, statistic.held / statistic.size)
        return super().typical(setting)

    def influence(self, setting: Setting) -> Influence | str:
        if self.candidates:
            return "candidates share bits and are separated by regression, so that estimates are not means over reports"
        return super().influence(setting)

    def default_title(self, setting: Setting) -> str:
        if self.candidates:
            return f"Of {self.field}: which texts are common?"
        if self._of_items(setting.domain):
            return f"Of {self.field}: how many people have each item?"
        return shares_title(self.field, setting.domain)

    def covers(self, setting: Setting) -> str:
        return "It covers all items together: which of them are held." if self._of_items(setting.domain) else ""

    def findings(self, setting: Setting) -> Iterator[Finding]:
        if self.keep_reports:
            yield Finding(
                "note",
                "keep_reports",
                "its single reports are kept until the retention is over, and the promise says so; without this key "
                "only their sum is kept",
            )
