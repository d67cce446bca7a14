"""Histograms: the share of each value, or of some texts, asked of everyone at every step.

Other kinds ask for the shares of values too: what is read of a field, and by which mechanism, is the same for all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeGuard

import numpy as np

from hubbub.collection.safety import Finding
from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings, as_domain
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of
from hubbub.core.reports import Floats
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.rappor import Rappor
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.mechanisms.sets.set_mechanism import SetMechanism
from hubbub.planning.item_shares import set_options
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Frequencies, Statistic
from hubbub.protocols.views.basic import Clipped, View, Whole
from hubbub.questions.base import Example, Question, Shape, shares_shape
from hubbub.questions.browsers import browsers_lack
from hubbub.questions.consistent_shares import SharesQuestion
from hubbub.questions.statistic import MOST_BYTES, StatisticQuestion, named_mechanism, named_with_buckets
from hubbub.statistics.influence import Influence


@dataclass(frozen=True)
class TextShares(Statistic):
    """The share of each candidate among any text, by RAPPOR's Bloom filters; its error has no formula.

    `filter` has the parameters of the Bloom filters by name: bits, hashes, cohorts.
    """

    domain: Strings
    candidates: tuple[str, ...]
    filter: tuple[tuple[str, int], ...] = ()
    view: View = Whole()  # noqa: RUF009 - frozen

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many candidates there are."""
        return len(self.candidates)

    def mechanism(self, units: int) -> Rappor:
        filters: dict[str, Any] = dict(self.filter)
        return Rappor(epsilon=epsilon_of(units), domain=self.domain, **filters)

    def error(self, units: int, n: float, like: Floats) -> float:
        return float("nan")

    def spread(self, like: Floats) -> float:
        return float("nan")


_OF: dict[type[Domain], tuple[str | None, ...]] = {Numeric: (None, "cells"), Sets: ("size",)}
"""What can be asked of a field instead of its value."""


@dataclass(frozen=True)
class Shares(Frequencies):
    """The share of each value, by the best of GRR, OUE and OLH unless an oracle is named.

    `buckets` is for an oracle that hashes; None takes its own choice.
    """

    oracle: str | None = None
    buckets: int | None = None

    def mechanism(self, units: int) -> FrequencyOracle:
        return _oracle(self.oracle, units, as_domain("domain", self.domain), self.buckets)


@lru_cache(maxsize=4096)
def _oracle(name: str | None, units: int, domain: Domain, buckets: int | None) -> FrequencyOracle:
    epsilon = epsilon_of(units)
    if name is None and buckets is None:
        return adaptive(epsilon=epsilon, domain=domain, most_bytes=MOST_BYTES)
    oracle: FrequencyOracle = named_with_buckets(name, FrequencyOracle, buckets, epsilon=epsilon, domain=domain)
    return oracle


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
    what = {Numeric: "how is it spread", Sets: "how many items has it"}
    return f"Of {field}: {what.get(type(domain), 'how common is each value')}?"


@dataclass(frozen=True)
class ItemShares(Statistic):
    """The share of people that hold each item, by the mechanism of the smallest exact error, or a named one.

    What is compared is padding and sampling over GRR and OLH, PrivSet, and a unary encoding with a split budget, if
    people hold half of what they may. (Ternary mechanisms, which report signs too, erred more wherever it was
    measured.)
    """

    domain: Sets
    named: str | None = None
    view: View = Whole()  # noqa: RUF009 - frozen

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many items there are."""
        size = self.domain.items.size
        assert size is not None
        return size

    @property
    def held(self) -> float:
        """How many items people are taken to hold, on average."""
        return self.domain.most / 2

    def mechanism(self, units: int) -> SetMechanism:
        return _mechanism(self.named, units, self.size, self.domain.most)

    def error(self, units: int, n: float, like: Floats) -> float:
        noise = self.mechanism(units).noise(1)
        return (noise.floor + noise.slope * float(np.mean(np.clip(like, 0.0, 1.0)))) / n

    def spread(self, like: Floats) -> float:
        share = np.clip(like, 0.0, 1.0)
        return float(np.mean(share * (1 - share)))


@lru_cache(maxsize=256)
def _mechanism(name: str | None, units: int, items: int, most: int) -> SetMechanism:
    epsilon, sets = epsilon_of(units), Sets(Ordinal(items), most)  # devices keep codes, not names
    if name is not None and name != "PSFO":
        made: SetMechanism = named_mechanism(name, SetMechanism)(epsilon=epsilon, domain=sets)
        return made
    hashed = PSFO(epsilon=epsilon, domain=sets, oracle=OLH(epsilon=epsilon, domain=items + most))
    options: list[SetMechanism] = [hashed]
    for option in set_options(epsilon=epsilon, domain=sets, held=most / 2):
        mechanism = option.mechanism
        if not isinstance(mechanism, SetMechanism) or option.name == "PSFO-OLH" or any(browsers_lack(mechanism)):
            continue
        if mechanism.report_bytes <= MOST_BYTES:
            options.append(mechanism)
    if name == "PSFO":
        options = [mechanism for mechanism in options if isinstance(mechanism, PSFO)]
    return min(options, key=lambda mechanism: float(f"{mechanism.variance(1, most / 2 / items):.9g}"))


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
        from hubbub.protocols.statistic import steady

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
