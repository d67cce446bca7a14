"""Histograms: the share of each value, or of some texts, asked of everyone at every step."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

import numpy as np

from hubbub.collection.safety import Finding
from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.views.basic import Clipped, View, Whole
from hubbub.questions.base import Example, Question, shares_shape
from hubbub.questions.consistent_shares import SharesQuestion
from hubbub.questions.shape import Shape
from hubbub.questions.statistic import StatisticQuestion
from hubbub.questions.value_shares import ItemShares, Shares, TextShares
from hubbub.statistics.influence import Influence

_OF: dict[type[Domain], tuple[str | None, ...]] = {Numeric: (None, "cells"), Sets: ("size",)}
"""What can be asked of a field instead of its value."""


def shares_read(domain: Domain, kind: str, of: str | None) -> tuple[Domain, View]:
    """The codes whose shares are asked for, and the view that reads them; refused where the field has none."""
    name, allowed = domain.kind, _OF.get(type(domain), (None,))
    if domain.size is None and not isinstance(domain, Sets):
        raise InvalidValue("kind", kind, f"another kind: this one does not read fields of kind {name}")
    if of not in allowed:
        listed = " or ".join("nothing" if option is None else f'"{option}"' for option in allowed)
        raise InvalidValue("of", of, f"{listed}, for a field of kind {name}")
    if isinstance(domain, Numeric):
        return domain, Clipped(domain.low, domain.high)
    if isinstance(domain, Sets):
        from hubbub.protocols.views.sets import Size

        return Ordinal(domain.most + 1), Size(domain.most)
    return domain.symbols(), Whole()


def shares_labels(domain: Domain) -> tuple[str, ...] | None:
    """A name for each of those codes."""
    return tuple(map(str, range(domain.most + 1))) if isinstance(domain, Sets) else domain.symbol_labels()


def shares_title(field: str, domain: Domain) -> str:
    """The question in words."""
    question = {Numeric: "how is it spread", Sets: "how many items has it"}
    return f"Of {field}: {question.get(type(domain), 'how common is each value')}?"


@dataclass(frozen=True, kw_only=True)
class ValuesQuestion(SharesQuestion, StatisticQuestion):
    """The share of each value of a field, or of candidates among texts, asked of everyone at every step.

    Parameters
    ----------
    of
        What of the field: "size" asks for the size of a set; "cells", for a numeric field, is what is asked anyway.
    candidates
        Of a field of strings: the texts whose shares are estimated.
    bits, hashes, cohorts
        Of a field of strings: the size of the Bloom filters, by how many hash functions a text sets bits, and how many
        sets of hash functions there are; those of RAPPOR unless given.
    buckets
        With a mechanism that hashes values, such as OLH, SOLH or Loloha: how many buckets; the best unless given.
    """

    in_groups: ClassVar[bool] = True
    by_filters: ClassVar[str]
    """The mechanism of texts, the only one that may be named."""
    of: str | None = None
    candidates: tuple[str, ...] = ()
    bits: int | None = None
    hashes: int | None = None
    cohorts: int | None = None
    buckets: int | None = None

    def texts(self) -> TextShares | None:
        """The candidates of a field of strings; None for any other field, which has no candidates and no filters."""
        domain, candidates = self.setting.domain, self.candidates
        filters = {"bits": self.bits, "hashes": self.hashes, "cohorts": self.cohorts}
        chosen = tuple((name, value) for name, value in filters.items() if value is not None)
        if bool(candidates) != isinstance(domain, Strings):
            raise InvalidValue("candidates", candidates, "at least one for a field of strings, none for any other")
        if not isinstance(domain, Strings):
            for name, value in chosen:
                raise InvalidValue(name, value, "nothing: only fields of strings are reported by Bloom filters")
            return None
        for name in ("of", "buckets"):
            if getattr(self, name) is not None:
                raise InvalidValue(name, getattr(self, name), "nothing, for a field of kind strings")
        if self.mechanism not in (None, self.by_filters):
            raise InvalidValue("mechanism", self.mechanism, self.by_filters)
        try:
            codes = domain.encode(candidates)
        except InvalidValue as error:
            raise InvalidValue("candidates", error.value, error.allowed) from None
        if len(set(codes.tolist())) < len(candidates):
            raise InvalidValue("candidates", candidates, "texts that differ from each other")
        return TextShares(domain, candidates, chosen)

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        from hubbub.protocols.steady import steady

        candidates, groups = self.candidates or None, self.setting.groups
        return steady(self.statistic(), epsilon=self.epsilon, candidates=candidates, groups=groups, memory=memory)

    def labels(self) -> tuple[str, ...] | None:
        return self.candidates or shares_labels(self.setting.domain)

    def sums_to_one(self) -> bool:
        return not self.candidates

    def knows_noise(self) -> bool:
        return not self.candidates  # regression has no noise that depends on the share alone

    def forecast(self, n: int) -> float | None:
        return None if self.candidates else super().forecast(n)

    def assumes(self) -> str:
        if self.candidates:
            return "no formula: candidates share bits and are separated by regression"
        return super().assumes()

    def influence(self) -> Influence | str:
        if self.candidates:
            return "candidates share bits and are separated by regression, so that estimates are not means over reports"
        return super().influence()

    def default_title(self) -> str:
        if self.candidates:
            return f"Of {self.field}: which texts are common?"
        return shares_title(self.field, self.setting.domain)


@dataclass(frozen=True, kw_only=True)
class HistogramQuestion(ValuesQuestion):
    """How common each value of a field is, or each item of a field of sets: every step costs epsilon.

    Parameters
    ----------
    keep_reports
        Whether the server keeps single reports until the retention is over, instead of their sum alone: then other
        candidates can be asked for later, over any steps.

    Example:
        >>> from hubbub import Categorical
        >>> from hubbub.questions import Setting
        >>> setting = Setting("popular", {"theme": Categorical(["light", "dark"])}, 3600)
        >>> question = HistogramQuestion(field="theme", epsilon=1.0).bound(setting)
        >>> question.made_by(), question.labels()
        ('GRR', ('light', 'dark', '(none)'))
    """

    kind: ClassVar[str] = "histogram"
    by_filters: ClassVar[str] = "Rappor"
    keep_reports: bool = False

    @classmethod
    def examples(cls) -> Iterator[Example]:
        theme, plugins = Categorical(["light", "dark"]), Sets(Categorical(["a", "b", "c", "d"]), most=3)
        yield cls(field="theme", epsilon=1.0), {"theme": theme}
        yield cls(field="seconds", epsilon=1.0, consistency="auto"), {"seconds": Numeric(0, 20, cells=4)}
        yield cls(field="plugins", epsilon=1.0, consistency="auto"), {"plugins": plugins}
        yield cls(field="plugins", epsilon=1.0, of="size", consistency="mle-apx"), {"plugins": plugins}
        yield (
            cls(field="word", epsilon=4.0, candidates=("yes", "no"), consistency="auto"),
            {"word": Strings(longest=16)},
        )
        yield (
            cls.make(cls.kind, field="theme", by=("level",), epsilon=2.0, consistency="auto"),
            {"theme": theme, "level": Ordinal(2)},
        )

    @classmethod
    def reading(cls, keys: Mapping[str, Any]) -> type[Question]:
        from hubbub.questions.breakdown import SharesByGroup

        return SharesByGroup if "by" in keys else cls

    @property
    def keeps(self) -> bool:
        return self.keep_reports

    def least_error(self, n: int) -> float | None:
        from hubbub.planning.minimax import shares_floor

        if self.candidates:
            return None  # as for the forecast
        domain, size = self.setting.domain, self.statistic().size
        most = domain.most if self._of_items(domain) else 1
        return math.sqrt(shares_floor(epsilon=self.epsilon, size=size, n=n, most=most) / size)

    def takes_fakes(self) -> bool:
        # Whoever asks kept reports about other candidates would take fakes for people's.
        from hubbub.shuffle.report_numbers import has_uniform_reports

        return not self.keeps and has_uniform_reports(self.mechanism_for())

    def statistic(self) -> Statistic:
        domain = self.setting.domain
        texts = self.texts()
        if texts is not None:
            return texts
        if self._of_items(domain):
            if self.buckets is not None:
                raise InvalidValue("buckets", self.buckets, "nothing, for the items of sets")
            return ItemShares(domain, named=self.mechanism)
        codes, view = shares_read(domain, self.kind, self.of)
        return Shares(codes, oracle=self.mechanism, buckets=self.buckets, view=view)

    def _of_items(self, domain: Domain) -> TypeGuard[Sets]:
        """Whether it asks which items of a set people hold."""
        return isinstance(domain, Sets) and self.of is None

    def labels(self) -> tuple[str, ...] | None:
        domain = self.setting.domain
        if self._of_items(domain):
            labels = domain.items.symbol_labels()
            return None if labels is None else labels[:-1]  # who recorded nothing holds no item
        return super().labels()

    def shape(self) -> Shape:
        domain = self.setting.domain
        if self._of_items(domain):
            domain = domain.items
        return shares_shape(domain, self.statistic().size, adds_up=self.setting.groups == 1)

    def sums_to_one(self) -> bool:
        return super().sums_to_one() and not self._of_items(self.setting.domain)

    def assumes(self) -> str:
        if self._of_items(self.setting.domain):
            return "every step, if people hold half as many items as they may"
        return super().assumes()

    def typical(self) -> Floats:
        statistic = self.statistic()
        if isinstance(statistic, ItemShares):
            return np.full(statistic.size, statistic.held / statistic.size)
        return super().typical()

    def default_title(self) -> str:
        if self._of_items(self.setting.domain):
            return f"Of {self.field}: how many people have each item?"
        return super().default_title()

    def covers(self) -> str:
        return "It covers all items together: which of them are held." if self._of_items(self.setting.domain) else ""

    def findings(self) -> Iterator[Finding]:
        yield from super().findings()
        if self.keep_reports:
            yield Finding(
                "note",
                "keep_reports",
                "its single reports are kept until the retention is over, and the promise says so; without this key "
                "only their sum is kept",
            )
