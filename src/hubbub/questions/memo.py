"""Memos: values that persist, answered from a permanent random answer that is randomised again for every report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Frozen, Terms, memo_account
from hubbub.collection.time import every
from hubbub.core.domain import Categorical, Domain, Ordinal, Strings, as_domain
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of
from hubbub.core.reports import Floats
from hubbub.ledger.promise import MOST_UNITS, Promise, of_question
from hubbub.mechanisms.frequency.basic_rappor import BasicRappor
from hubbub.mechanisms.frequency.bloom_rappor import BloomRappor
from hubbub.mechanisms.frequency.loloha import Loloha
from hubbub.mechanisms.memoised import Memoised
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.views.basic import View, Whole
from hubbub.questions.base import Example
from hubbub.questions.histogram import ValuesQuestion, shares_read
from hubbub.questions.keys import check_epsilon
from hubbub.questions.spending import Cost
from hubbub.questions.statistic import named_mechanism, named_with_buckets
from hubbub.questions.value_shares import TextShares
from hubbub.questions.words import odds_text, sure_text
from hubbub.random.integers import exp_floor

MOST_MEMO_BITS = 512
"""The largest domain of basic RAPPOR: beyond, LOLOHA bounds what a value that changes can cost."""


@dataclass(frozen=True)
class PersistentShares(Statistic):
    """The shares of values that persist: a device draws a permanent answer, and randomises it again for every report.

    One report spends at most the units of `mechanism`; all reports of one value together spend at most `permanent`.
    Small domains are asked by basic RAPPOR, large ones by LOLOHA, unless either is named.
    """

    domain: Domain | int
    permanent: float
    memo: str | None = None
    buckets: int | None = None
    view: View = Whole()  # noqa: RUF009 - frozen

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many values there are."""
        size = as_domain("domain", self.domain).size
        assert size is not None
        return size

    def mechanism(self, units: int) -> BasicRappor | Loloha:
        name = self.memo or ("BasicRappor" if self.size <= MOST_MEMO_BITS else "Loloha")
        return _memo(name, self.permanent, units, as_domain("domain", self.domain), self.buckets)

    def error(self, units: int, n: float, like: Floats) -> float:
        noise = self.mechanism(units).noise(1)
        return (noise.floor + noise.slope / self.size) / n

    def spread(self, like: Floats) -> float:
        share = np.clip(like, 0.0, 1.0)
        return float(np.mean(share * (1 - share)))


@dataclass(frozen=True)
class PersistentTexts(TextShares):
    """The shares of candidates among texts that persist, by RAPPOR with both layers, which devices remember."""

    permanent: float = 0.0

    def mechanism(self, units: int) -> BloomRappor:
        report = epsilon_of(units)
        _check_layers(self.permanent, report)
        return BloomRappor.of_report(report, epsilon=self.permanent, domain=self.domain, **dict(self.filter))


@dataclass(frozen=True, kw_only=True)
class MemoQuestion(ValuesQuestion):
    """How common each value is, of values that persist: reports of a value that stays cost nothing more.

    Parameters
    ----------
    permanent
        What all reports of one value may tell together; `epsilon` is what a single one may.

    Example:
        >>> from hubbub import Ordinal
        >>> from hubbub.questions import Setting
        >>> question = MemoQuestion(field="theme", epsilon=1.0, permanent=2.0)
        >>> question.bound(Setting("kept", {"theme": Ordinal(3)}, 3600)).made_by()
        'BasicRappor'
    """

    kind: ClassVar[str] = "memo"
    by_filters: ClassVar[str] = "BloomRappor"
    frozen: ClassVar[Frozen] = "last"
    permanent: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon("permanent", self.permanent)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield cls(field="theme", epsilon=1.0, permanent=2.0), {"theme": Categorical(["light", "dark"])}
        yield (
            cls(field="level", epsilon=1.0, permanent=2.0, mechanism="Loloha", consistency="auto"),
            {"level": Ordinal(9)},
        )
        yield cls(field="word", epsilon=2.0, permanent=4.0, candidates=("yes", "no")), {"word": Strings(longest=16)}

    def statistic(self) -> PersistentShares | PersistentTexts:
        texts = self.texts()
        if texts is not None:
            return PersistentTexts(texts.domain, texts.candidates, texts.filter, permanent=self.permanent)
        codes, view = shares_read(self.setting.domain, self.kind, self.of)
        return PersistentShares(codes, permanent=self.permanent, memo=self.mechanism, buckets=self.buckets, view=view)

    def cost(self) -> Cost:
        mechanism = self.mechanism_for()
        spent = mechanism.permanent_event().spent
        return Cost(spent, 0, most=spent * mechanism.most_memos)

    def terms(self) -> Terms:
        mechanism = self.mechanism_for()
        account = memo_account(self.field, mechanism.spec_id)
        return replace(super().terms(), account=account, state=type(mechanism).__name__)

    def promise(self, steps: int = 1, interval: int | None = None) -> Promise:
        return Promise(min(self.cost().most, MOST_UNITS), 0, scope=of_question(self.setting.name))

    def limits(self) -> Mapping[str, float]:
        return {"epsilon": self.epsilon, "permanent": self.permanent}

    def assumes(self) -> str:
        return super().assumes() if self.candidates else "every step, new or not"

    def sentence(self) -> str:
        mechanism = self.mechanism_for()
        return (
            f"One report {every(self.setting.step_seconds)}. For each value the device picks a random answer once, "
            "keeps it for good, and makes every report from it. One report is "
            f"{odds_text(mechanism.effective_epsilon)}. All reports about a value that does not change, together and "
            f"over any time, can make this observer at most {sure_text(mechanism.permanent_epsilon)} sure. Every new "
            "value costs as much again, until the limit for life is reached. Then the device makes its reports from "
            "the last answer that it keeps, because silence would reveal that something changed. That a value "
            "changed, and when, is not hidden: many reports made from one answer can be told from many made from "
            "another."
        )

    def linked(self) -> str:
        mechanism = self.mechanism_for()
        if isinstance(mechanism, Loloha):
            return (
                f"The reports of {self.setting.name} carry the number of the device's hash function, one of "
                f"{mechanism.functions:,}, which stays the same."
            )
        if isinstance(mechanism, BloomRappor):
            return (
                f"The reports of {self.setting.name} carry the number of the device's cohort, one of "
                f"{mechanism.cohorts:,}, which stays the same, and all of them about one value are made from the same "
                "kept answer, and are alike but for their noise."
            )
        return (
            f"All reports of {self.setting.name} about one value are made from the same kept answer, and are alike but "
            "for their noise."
        )

    def findings(self) -> Iterator[Finding]:
        yield from super().findings()
        yield Finding(
            "note",
            "",
            "its reports can be linked: all reports about one value are made from the same permanent answer, to which "
            "noise is added",
        )


@lru_cache(maxsize=256)
def _memo(name: str, permanent: float, units: int, domain: Domain, buckets: int | None) -> BasicRappor | Loloha:
    report = epsilon_of(units)
    _check_layers(permanent, report)
    if name == "BloomRappor":
        raise InvalidValue("mechanism", name, "BasicRappor or Loloha, for a field that is not of strings")
    if named_mechanism(name, Memoised) is Loloha or buckets is not None:
        options = {"epsilon": permanent, "domain": domain, "report_epsilon": report}
        loloha: Loloha = named_with_buckets(name, Memoised, buckets, **options)
        return loloha
    return _rappor(permanent, report, domain)


def _check_layers(permanent: float, report: float) -> None:
    if not report < permanent:  # equal would mean bare permanent answers: fingerprints
        raise InvalidValue("permanent", permanent, f"an epsilon above that of one report, {report:g}")


def _rappor(permanent: float, report: float, domain: Domain) -> BasicRappor:
    """The symmetric second step that lets one report tell just so much.

    With a permanent bit right with probability a, a report's bit is right with probability s = a k + (1-a)(1-k), and
    one report spends 2 ln(s/(1-s)): so k = (s - (1-a)) / (2a - 1), rounded down.
    """
    full = BasicRappor(epsilon=permanent, domain=domain, width=32)
    right, wrong = full.permanent_rates
    most, root = exp_floor(report), exp_floor(Fraction(report) / 2)
    keep = int((root / (1 + root) - wrong) / (right - wrong) * (1 << 32))
    for tried in range(min(keep, (1 << 32) - 1), max(keep - 4, 1 << 31), -1):
        thresholds = {"one": full.one, "zero": full.zero, "keep": tried, "lift": (1 << 32) - tried}
        rappor = BasicRappor(epsilon=permanent, domain=domain, width=32, **thresholds)
        if rappor.ratio() <= most:
            return rappor
    raise InvalidValue("epsilon", report, "an epsilon that 32-bit probabilities can tell from 0")
