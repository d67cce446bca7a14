"""Itemsets: which items many people hold, and which of them together. A study of several rounds (SVIM and SVSM)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Family, Terms
from hubbub.core.domain import Categorical, Ordinal, Sets
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.spec import Json
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.protocols.driver import Protocol
from hubbub.protocols.itemsets.lengths import LOWERED, PERCENTILE
from hubbub.protocols.itemsets.study import (
    ARITHMETIC,
    MOST_CANDIDATES,
    MOST_ITEMS,
    MOST_KEPT,
    MiningConstants,
    itemset_study,
)
from hubbub.protocols.memory import Memory
from hubbub.questions.base import Example
from hubbub.questions.shape import Shape
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
    candidates
        How many items, and how many itemsets, are candidates whose shares are estimated; 2k unless given.
    largest
        The most items of a candidate itemset; about log2 k unless given.
    percentile
        Sets are padded to this percentile of their lengths.
    top_guess
        The normalised share of the most frequent item, where shares of itemsets are guessed as products.
    percents
        The size of each group, one for each round, in percent of the people; the text's unless given.
    of
        "itemsets" (unless given: items, and items that are held together), or "items" alone.

    Example:
        >>> from hubbub.questions import Setting
        >>> setting = Setting("together", {"basket": Sets(Ordinal(500), most=30)}, 86400)
        >>> question = ItemsetsQuestion(field="basket", epsilon=2.0, k=16, start="2026-12-01T00:00Z")
        >>> terms = question.bound(setting).terms()
        >>> terms.rounds, terms.limit, terms.views[1]["sets"]
        (5, 2000000000000, {'most': 32, 'each': {'most': 3}})
    """

    kind: ClassVar[str] = "itemsets"
    in_groups: ClassVar[bool] = True
    skip_checks: ClassVar[Mapping[str, str]] = {"check_forecast": "it is that of an item that few hold"}
    k: int = 32
    candidates: int | None = None
    largest: int | None = None
    percentile: float = PERCENTILE
    top_guess: float = LOWERED
    percents: tuple[int, ...] = ()
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
        if self.candidates is not None:
            check_integer("candidates", self.candidates, self.k, MOST_KEPT)
        self._constants()

    def _constants(self) -> MiningConstants:
        names = ("candidates", "largest", "percentile", "top_guess", "percents")
        return MiningConstants(**{name: getattr(self, name) for name in names})

    @property
    def _kept(self) -> int:
        return self._constants().kept(self.k)

    @property
    def _together(self) -> bool:
        return self.of == "itemsets"

    def _sets(self) -> Sets:
        domain = self.setting.domain
        if not isinstance(domain, Sets) or not isinstance(domain.items.size, int):
            raise InvalidValue("field", self.field, "a field of kind sets")
        if domain.items.size > MOST_ITEMS:
            raise InvalidValue("field", self.field, f"a field of sets of at most {MOST_ITEMS:,} items")
        return domain

    def _first(self) -> PSFO:
        sets = self._sets()
        codes = Sets(Ordinal(sets.items.size or 0), sets.most)
        return PSFO(epsilon=epsilon_of(units_of(self.epsilon)), domain=codes, length=1)

    def check(self) -> None:
        self._first()
        self._percents()
        self.schedule()

    def _percents(self) -> tuple[int, ...]:
        return self._constants().groups(self._sets().items.size or 0, self.k, itemsets=self._together)

    @property
    def rounds(self) -> int:
        return len(self._percents())

    def smallest_group(self) -> float:
        return min(self._percents()) / 100 / self.turns

    def released_group(self) -> float:
        # Groups that say which items or itemsets they hold, each after one that says how many.
        return min(self._percents()[::-2][: 1 + self._together]) / 100 / self.turns

    def terms(self) -> Terms:
        units, first = units_of(self.epsilon), self._first()
        largest = self._constants().most_items(self.k) if self._together else 1
        bound: dict[str, Json] = {"most": self._kept, "each": {"most": largest}}
        hashed = OLH(epsilon=epsilon_of(units), domain=2)
        return Terms(
            fields=self.reads(),
            frozen="study",
            views=({"kind": "whole"}, {"kind": "subsets", "sets": bound}, {"kind": "subsetcount", "sets": bound}),
            mechanisms=(first.spec_id,),
            families=tuple(Family(name, (units,)) for name in ("GRR", "OLH", "PSFO")),
            rounds=self.rounds,
            limit=units,
            promises=(self.promise(),),
            report_bytes=max(first.report_bytes, hashed.report_bytes, _CODE_BYTES),
            study=self.schedule(),
        )

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        sets = self._sets()
        return itemset_study(
            sets,
            epsilon=self.epsilon,
            k=self.k,
            itemsets=self._together,
            names=sets.items.labels,
            turn=first,
            turns=self.turns,
            groups=self.setting.groups,
            constants=self._constants(),
        )

    @property
    def arithmetic(self) -> int:
        return ARITHMETIC

    def labels(self) -> None:
        return None

    def shape(self) -> Shape:
        return Shape(form="ranking", size=self.k, everyone=False)

    def forecast(self, n: int) -> float | None:
        """The standard error of an item that few hold, if those who say which candidates they hold are padded to 4."""
        size = self._sets().items.size or 0
        percent = self._percents()[1 if size <= self._kept else 2]
        people = n / self.turns * percent / 100
        psfo = PSFO(epsilon=self.epsilon, domain=max(2, min(size, self._kept)), length=_TYPICAL)
        return math.sqrt(psfo.variance(1) / people) if people > 0 else None

    def assumes(self) -> str:
        return f"an item that few hold, where nine people of ten hold at most {_TYPICAL} of the candidates"

    def influence(self) -> Influence | str:
        return "forged reports also influence which candidates are searched"

    @property
    def summary(self) -> str:
        return f"itemsets, the {self.k} most frequent {self.of}"

    def made_by(self) -> str:
        return "PSFO"

    def default_title(self) -> str:
        return f"Of {self.field}: which items are held most often{', and together' if self._together else ''}?"

    def findings(self) -> Iterator[Finding]:
        size = self._sets().items.size or 0
        if not self._together and self.k > size:
            yield Finding("note", "k", f"there are {size:,} items: no more are told")


_TYPICAL = 4
