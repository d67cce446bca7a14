"""The most common values of a field whose values nobody lists: texts, or numbers of a large range."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Terms
from hubbub.core.domain import Domain, Ordinal, Strings
from hubbub.core.domain.texts import MOST_BITS
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import units_of
from hubbub.protocols.ask import CIRCLE, Arc
from hubbub.protocols.driver import Protocol
from hubbub.protocols.heavy_hitters.pem import ARITHMETIC, group_asks, prefix_extending, sensitivity_threshold
from hubbub.protocols.heavy_hitters.prefixes import QUERY_LIMIT, BitEncoding, Integers, PrefixPlan, Texts
from hubbub.protocols.memory import Memory
from hubbub.questions.base import Example
from hubbub.questions.shape import Shape
from hubbub.questions.study import StudyQuestion
from hubbub.questions.words import odds_text
from hubbub.statistics.influence import Influence

MANY_GROUPS = 10
"""More groups than this leave each of them few people."""
_FORECASTS = (10_000, 1_000_000)


@dataclass(frozen=True, kw_only=True)
class TopQuestion(StudyQuestion):
    """Which values are the most common, and their shares, by the prefix extending method: a run costs epsilon.

    Parameters
    ----------
    k
        How many values are looked for.
    longest
        Of a field of strings, how many bytes of UTF-8 a text may have to be found; the field's own unless given.
        Shorter is sharper: longer texts take more groups of people.
    query_limit
        How many candidates the server may test in a run.
    groups
        How many groups of people report prefixes, of one length each; as few as the limit allows unless given.
    branching
        "bits", or "characters": whether groups report prefixes of any number of bits or of whole bytes.
    threshold
        Where it is given, values that are thought to have a smaller share are not searched.

    Example:
        >>> question = TopQuestion(field="word", epsilon=2.0, start="2026-12-01T00:00Z", k=8)
        >>> from hubbub.questions import Setting
        >>> setting = Setting("words", {"word": Strings(longest=8)}, 86400)
        >>> question.bound(setting).plan().lengths, question.summary
        ((16, 28, 40, 52, 64), 'top 8')
    """

    kind: ClassVar[str] = "top"
    in_groups: ClassVar[bool] = True
    skip_checks: ClassVar[Mapping[str, str]] = {"check_forecast": "it is that of a value that is found"}
    k: int = 10
    longest: int | None = None
    query_limit: int = QUERY_LIMIT
    groups: int | None = None
    branching: Literal["bits", "characters"] = "bits"
    threshold: float | None = None

    def plan(self) -> PrefixPlan:
        """The groups of a run."""
        encoding = self._encoding(self.setting.domain)
        if self.groups is not None:
            check_integer("groups", self.groups, 1, encoding.bits)
        return PrefixPlan(
            encoding=encoding,
            k=self.k,
            epsilon=self.epsilon,
            query_limit=self.query_limit,
            branching=self.branching,
            groups=self.groups or 0,
            threshold=self.threshold,
        )

    def _encoding(self, domain: Domain) -> BitEncoding:
        if isinstance(domain, Strings):
            longest = domain.longest if self.longest is None else self.longest
            if not 1 <= longest <= min(domain.longest, MOST_BITS // 8):
                most = min(domain.longest, MOST_BITS // 8)
                raise InvalidValue("longest", self.longest, f"from 1 to {most} bytes, for this field")
            return Texts(longest)
        if self.longest is not None:
            raise InvalidValue("longest", self.longest, "nothing, for a field that is not of strings")
        if not isinstance(domain, Ordinal):
            kind = type(domain).__name__.lower()
            raise InvalidValue("domain", kind, "a field of strings or an ordinal one: a histogram tells of any other")
        return Integers(domain.size.bit_length(), domain.size)

    # -- what it asks of devices ------------------------------------------------------------------------------

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield cls(field="word", epsilon=4.0, k=2, start="2026-12-01T00:00Z"), {"word": Strings(longest=2)}
        yield cls(field="level", epsilon=4.0, k=2, start="2026-12-01T00:00Z"), {"level": Ordinal(9)}

    @property
    def rounds(self) -> int:
        return 1

    def check(self) -> None:
        self.schedule()
        self.plan()

    def terms(self) -> Terms:
        plan = self.plan()
        return Terms(
            fields=self.reads(),
            frozen="study",
            views=tuple(ask.view.spec() for ask in group_asks(plan)),
            mechanisms=(plan.oracle.spec_id,),
            parts=len(plan.lengths),
            limit=units_of(self.epsilon),
            promises=(self.promise(),),
            report_bytes=plan.oracle.report_bytes,
            study=self.schedule(),
        )

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        part = CIRCLE // self.turns
        return prefix_extending(self.plan(), Arc(first % self.turns * part, part), self.setting.groups)

    @property
    def arithmetic(self) -> int:
        return ARITHMETIC

    @property
    def searches(self) -> bool:
        return True

    # -- what it tells ----------------------------------------------------------------------------------------

    def shape(self) -> Shape:
        return Shape(form="ranking", size=self.k, everyone=False)

    def labels(self) -> None:
        return None

    def forecast(self, n: int) -> float | None:
        plan = self.plan()
        group = n // self.turns // len(plan.lengths)
        return math.sqrt(plan.oracle.variance(group)) if group else None

    def released_group(self) -> float:
        return 1 / self.turns / len(self.plan().lengths)

    def assumes(self) -> str:
        groups = len(self.plan().lengths)
        return f"a share that is found, told by the last of {groups} groups of people" if groups > 1 else "a share"

    def influence(self) -> Influence | str:
        return "forged reports also influence which prefixes are searched further"

    def smallest_share(self, n: int) -> float:
        """The share that is found reliably if n devices take part: one false candidate is expected to pass it
        (4.3.2).
        """
        plan = self.plan()
        group = max(1, n // self.setting.groups // self.turns // len(plan.lengths))
        sigma = math.sqrt(plan.oracle.variance(1))
        known = plan.lengths[-2] if len(plan.lengths) > 1 else 0
        tested = min(self.k, 1 << known) << (plan.lengths[-1] - known)
        return sensitivity_threshold(sigma, tested, group)

    # -- words ------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        return f"top {self.k}"

    def made_by(self) -> str:
        return type(self.plan().oracle).__name__

    def default_title(self) -> str:
        return f"Of {self.field}: which values are the most common?"

    def sentence(self) -> str:
        plan = self.plan()
        groups = len(plan.lengths)
        covers = ""
        if groups > 1:
            covers = (
                f" It covers the first bits of the value; the device's group, one of {groups}, decides how many bits."
            )
        return f"One report, {self.unit_of_time}.{covers} It is {odds_text(plan.oracle.effective_epsilon)}."

    def findings(self) -> Iterator[Finding]:
        groups = len(self.plan().lengths)
        shares = {n: self.smallest_share(n) for n in _FORECASTS}
        smallest = " and ".join(f"{100 * share:.2g}% with {n:,}" for n, share in shares.items() if share < 1)
        if smallest:
            yield Finding("note", "k", f"the smallest share that is found reliably is about {smallest} devices")
        few = [n for n, share in shares.items() if share >= 1]
        if few:
            yield Finding("warning", "epsilon", f"with {few[-1]:,} devices or fewer no value is found reliably")
        yield Finding(
            "note",
            "",
            "its single reports are kept until the retention is over, because the server searches among them; the "
            "promise says so",
        )
        if groups > MANY_GROUPS:
            where = "longest" if isinstance(self.setting.domain, Strings) else "query_limit"
            yield Finding(
                "warning",
                where,
                f"its {groups} groups leave few people in each: a smaller longest or a larger query_limit makes fewer "
                "groups",
            )
