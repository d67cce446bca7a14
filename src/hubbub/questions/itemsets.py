"""Itemsets: which items many people hold, and which of them together. A study of several rounds (SVIM and SVSM)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hubbub.collection.setting import Finding, Setting
from hubbub.collection.terms import Family, Terms
from hubbub.core.domain import Categorical, Ordinal, Sets
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.spec import Json
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.protocols.driver import Protocol
from hubbub.protocols.itemsets.lengths import largest_guess
from hubbub.protocols.itemsets.study import ARITHMETIC, MOST_CANDIDATES, MOST_ITEMS, group_percents, itemset_study
from hubbub.protocols.memory import Memory
from hubbub.questions.base import Example, Shape
from hubbub.questions.study import StudyQuestion
from hubbub.statistics.influence import Influence

_CODE_BYTES = 4
"""The largest report of one of few candidates by GRR."""


@dataclass(frozen=True, kw_only=True)
class ItemsetsQuestion(StudyQuestion):
    """The most frequent itemsets of a field of sets, or its most frequent items: a device answers once in a run.

    One group of people names an item each, others say how many candidates they hold and which, others again how many
    candidate itemsets and which.

    Parameters
    ----------
    k
        How many are looked for.
    of
        "itemsets" (unless given: items, and items that are held together), or "items" alone.

    Example:
        >>> setting = Setting("together", {"basket": Sets(Ordinal(500), most=30)}, 86400)
        >>> question = ItemsetsQuestion(field="basket", epsilon=2.0, k=16, start="2026-12-01T00:00Z")
        >>> terms = question.terms(setting)
        >>> terms.rounds, terms.limit, terms.views[1]["sets"]
        (5, 2000000000000, {'most': 32, 'each': {'most': 3}})
    """

    kind: ClassVar[str] = "itemsets"
    skip_checks: ClassVar[Mapping[str, str]] = {"check_forecast": "it is that of an item that few hold"}
    k: int = 32
    of: Literal["itemsets", "items"] = "itemsets"

    @classmethod
    def examples(cls) -> Iterator[Example]:
        plugins = Sets(Categorical(["a", "b", "c", "d"]), most=3)
        yield cls(field="plugins", epsilon=4.0, k=2, start="2026-12-01T00:00Z"), {"plugins": plugins}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of not in ("itemsets", "items"):
            raise InvalidValue("of", self.of, "itemsets or items")
        check_integer("k", self.k, 1 + self._together, MOST_CANDIDATES)

    @property
    def _together(self) -> bool:
        return self.of == "itemsets"

    def _sets(self, setting: Setting) -> Sets:
        domain = setting.domain
        if not isinstance(domain, Sets) or not isinstance(domain.items.size, int):
            raise InvalidValue("field", self.field, "a field of kind sets")
        if domain.items.size > MOST_ITEMS:
            raise InvalidValue("field", self.field, f"a field of sets of at most {MOST_ITEMS:,} items")
        return domain

    def _first(self, setting: Setting) -> PSFO:
        sets = self._sets(setting)
        codes = Sets(Ordinal(sets.items.size or 0), sets.most)
        return PSFO(epsilon=epsilon_of(units_of(self.epsilon)), domain=codes, length=1)

    def check(self, setting: Setting) -> None:
        self._first(setting)
        self.schedule(setting)

    def _percents(self, setting: Setting) -> tuple[int, ...]:
        return group_percents(self._sets(setting).items.size or 0, self.k, itemsets=self._together)

    def rounds(self, setting: Setting) -> int:
        return len(self._percents(setting))

    def smallest_group(self, setting: Setting) -> float:
        return min(self._percents(setting)) / 100 / self.turns

    def released_group(self, setting: Setting) -> float:
        # Groups that say which items or itemsets they hold, each after one that says how many.
        return min(self._percents(setting)[::-2][: 1 + self._together]) / 100 / self.turns

    def terms(self, setting: Setting) -> Terms:
        units, first = units_of(self.epsilon), self._first(setting)
        bound: dict[str, Json] = {"most": 2 * self.k, "each": {"most": largest_guess(self.k) if self._together else 1}}
        hashed = OLH(epsilon=epsilon_of(units), domain=2)
        return Terms(
            fields=self.reads(),
            frozen="study",
            views=({"kind": "whole"}, {"kind": "subsets", "sets": bound}, {"kind": "subsetcount", "sets": bound}),
            mechanisms=(first.spec_id,),
            families=tuple(Family(name, (units,)) for name in ("GRR", "OLH", "PSFO")),
            rounds=self.rounds(setting),
            limit=units,
            promises=(self.promise(setting),),
            report_bytes=max(first.report_bytes, hashed.report_bytes, _CODE_BYTES),
            study=self.schedule(setting),
        )

    def protocol(self, setting: Setting, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        sets = self._sets(setting)
        return itemset_study(
            sets,
            epsilon=self.epsilon,
            k=self.k,
            itemsets=self._together,
            names=sets.items.labels,
            turn=first,
            turns=self.turns,
        )

    @property
    def arithmetic(self) -> int:
        return ARITHMETIC

    def labels(self, setting: Setting) -> None:
        return None

    def shape(self, setting: Setting) -> Shape:
        return Shape(form="ranking", size=self.k, everyone=False)

    def forecast(self, setting: Setting, n: int) -> float | None:
        """The standard error of an item that few hold, if those who say which candidates they hold are padded to 4."""
        size = self._sets(setting).items.size or 0
        percent = self._percents(setting)[1 if size <= 2 * self.k else 2]
        people = n / self.turns * percent / 100
        psfo = PSFO(epsilon=self.epsilon, domain=max(2, min(size, 2 * self.k)), length=_TYPICAL)
        return math.sqrt(psfo.variance(1) / people) if people > 0 else None

    def assumes(self, setting: Setting) -> str:
        return f"an item that few hold, where nine people of ten hold at most {_TYPICAL} of the candidates"

    def influence(self, setting: Setting) -> Influence | str:
        return "forged reports also influence which candidates are searched"

    @property
    def summary(self) -> str:
        return f"itemsets, the {self.k} most frequent {self.of}"

    def made_by(self, setting: Setting) -> str:
        return "PSFO"

    def default_title(self, setting: Setting) -> str:
        return f"Of {self.field}: which items are held most often{', and together' if self._together else ''}?"

    def findings(self, setting: Setting) -> Iterator[Finding]:
        size = self._sets(setting).items.size or 0
        if not self._together and self.k > size:
            yield Finding("note", "k", f"there are {size:,} items: no more are told")


_TYPICAL = 4
