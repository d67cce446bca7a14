"""Questions about values that change rarely: one epsilon pays for a whole horizon of steps."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, get_args

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Frozen, Terms
from hubbub.collection.time import duration_text, every
from hubbub.core.domain import Categorical, Domain, Ordinal, Sets
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of
from hubbub.core.reports import Floats
from hubbub.ledger.promise import Promise
from hubbub.mechanisms.base import ReportFormat
from hubbub.planning.minimax import shares_floor
from hubbub.protocols.changes.net_stream import NetStream
from hubbub.protocols.changes.plan import planned_stream, query_error
from hubbub.protocols.changes.protocol import ARITHMETIC, Horizon, change_protocol
from hubbub.protocols.changes.stream import MOST_STEPS, ChangeStream
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.sao2.tree import Queries
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.views.basic import View, Whole
from hubbub.protocols.views.records import Entries, FieldBits
from hubbub.protocols.views.sets import Members, On
from hubbub.questions.base import Example, shares_shape
from hubbub.questions.consistent_shares import SharesQuestion
from hubbub.questions.keys import NOTHING
from hubbub.questions.shape import Shape
from hubbub.questions.spending import Cost
from hubbub.questions.statistic import StatisticQuestion
from hubbub.questions.words import listed, odds_text
from hubbub.statistics.influence import Influence

STREAMS: dict[str, type[ChangeStream]] = {kind.rule.__name__: kind for kind in (ChangeStream, NetStream)}
"""The streams, by the mechanism of which all reports of a horizon together are one report."""
MOST_ENTRIES = 1 << 10
"""How many shares a stream of changes may have: a report has as many bytes."""

_QUERIES = {
    "mean": "a step on average",
    "prefix": "the mean of the steps from the first to any, longer ones counting more",
    "range": "the mean of any range of steps, longer ones counting more",
}


@dataclass(frozen=True, kw_only=True)
class ChangingShares(Statistic):
    """The share of people with each value, at every step, where a value changes at most a few times in a horizon.

    A field of two ordinal values is one bit, and the share of 1 is estimated. Of another categorical or ordinal field,
    the last recorded value counts, and those who recorded none are not estimated. Of sets, every item is a bit. Several
    fields are the bits of all of them.

    Parameters
    ----------
    steps, changes
        The horizon, and how many changes of bits a device may report in it, of all fields together. A change from one
        category to another changes two bits, the first value one.
    fanout
        How many intervals of a level make up one of the level above.
    queries
        What the shares of devices on each level are best for, and `error` is about: the values of steps ("mean"), sums
        from the first step on ("prefix"), or sums over any range of steps ("range").
    rule
        The mechanism of which all reports of a horizon together are one report: ExSub or NetSub.
    """

    domains: Mapping[str, Domain]
    steps: int
    changes: int
    fanout: int = 2
    queries: Queries = "mean"
    rule: str = "ExSub"

    def __post_init__(self) -> None:
        for domain in self.domains.values():
            if not isinstance(domain, Categorical | Ordinal | Sets):
                kind = type(domain).__name__.lower()
                raise InvalidValue("domain", kind, "a categorical or ordinal field, or one of sets")
        for name, low, high in (("steps", 2, MOST_STEPS), ("changes", 1, 1 << 10), ("fanout", 2, MOST_STEPS)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InvalidValue(name, value, f"an integer from {low} to {high}")
        if self.queries not in get_args(Queries):
            raise InvalidValue("queries", self.queries, f"one of {', '.join(get_args(Queries))}")
        if self.rule not in STREAMS:
            raise InvalidValue("mechanism", self.rule, f"{' or '.join(STREAMS)}: they can report changes as they come")
        if self.size > MOST_ENTRIES:
            raise InvalidValue("domain", self.size, f"at most {MOST_ENTRIES} values or items")

    @property
    def _bits(self) -> tuple[FieldBits, ...]:
        return tuple(_field_bits(name, domain) for name, domain in self.domains.items())

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many shares are estimated."""
        return sum(part.entries for part in self._bits)

    @property
    def view(self) -> View:  # type: ignore[override]
        """What `Changes.bits` reads."""
        if len(self.domains) > 1:
            return Entries(self._bits)
        (part,) = self._bits
        return {"bit": On(), "code": Whole(), "items": Members(part.entries)}[part.reads]

    def labels(self) -> tuple[str, ...]:
        """A name for each share; of several fields, with the name of the field."""
        names = {name: _bit_labels(name, domain) for name, domain in self.domains.items()}
        if len(names) == 1:
            return next(iter(names.values()))
        return tuple(
            label if label == name else f"{name}: {label}" for name, labels in names.items() for label in labels
        )

    def mechanism(self, units: int) -> ChangeStream:
        one = [part.reads for part in self._bits] == ["code"]
        return _symbols(units, self.size, self.steps, self.changes, one, self.fanout, self.queries, self.rule)

    def error(self, units: int, n: float, like: Floats) -> float:
        """The mean over a horizon's queries, if all devices enrol at its start and use all their changes."""
        return query_error(self.mechanism(units), n, self.queries)

    def spread(self, like: Floats) -> float:
        return 0.0  # the error already is that of people drawn at random: each level asks some of them


def _field_bits(name: str, domain: Domain) -> FieldBits:
    if isinstance(domain, Ordinal) and domain.size == 2:
        return FieldBits(name, "bit", 1)
    size = domain.items.size if isinstance(domain, Sets) else domain.size
    assert size is not None
    return FieldBits(name, "items" if isinstance(domain, Sets) else "code", size)


def _bit_labels(name: str, domain: Domain) -> tuple[str, ...]:
    part, items = _field_bits(name, domain), domain.items if isinstance(domain, Sets) else domain
    if part.reads == "bit":
        return (name,)
    return getattr(items, "labels", None) or tuple(map(str, range(part.entries)))


@dataclass(frozen=True, kw_only=True)
class ChangesQuestion(SharesQuestion, StatisticQuestion):
    """How common each value is, of values that change rarely: a whole horizon of steps costs epsilon once.

    Parameters
    ----------
    field, fields
        The field; or several fields, which share epsilon and the changes.
    steps, changes
        How many steps a horizon has, and how many changes a device may tell of in it.
    fanout
        How many intervals of a level make up one of the level above.
    queries
        What is to be estimated best: "mean" (every step), "prefix" (from the first step on) or "range" (any range of
        steps). All of it can be asked in any case.
    mechanism
        ExSub, which is taken unless another is named, or NetSub, whose error is smaller where epsilon is small.

    Example:
        >>> question = ChangesQuestion(field="theme", epsilon=1.0, steps=24, changes=2)
        >>> question.summary, question.horizon
        ('changes, 24 steps', 24)
    """

    kind: ClassVar[str] = "changes"
    in_groups: ClassVar[bool] = True
    frozen: ClassVar[Frozen] = "last"
    field: str = ""
    fields: tuple[str, ...] = ()
    steps: int
    changes: int
    fanout: int = 2
    queries: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.fields and not self.field:
            raise InvalidValue("field", NOTHING, "the name of a field, or `fields` with several")
        if self.fields and self.field:
            raise InvalidValue("field", self.field, "nothing, where there are `fields`")
        if self.fields and (len(self.fields) < 2 or len(set(self.fields)) < len(self.fields)):
            raise InvalidValue("fields", self.fields, "the names of at least two fields, all different")

    @classmethod
    def examples(cls) -> Iterator[Example]:
        theme, dark = Categorical(["light", "dark"]), Ordinal(2)
        yield cls(field="theme", epsilon=2.0, steps=4, changes=8, consistency="auto"), {"theme": theme}
        more = cls(field="dark", epsilon=2.0, steps=6, changes=6, fanout=3, queries="range", mechanism="NetSub")
        yield more, {"dark": dark}
        tags = Sets(Categorical(["a", "b"]), most=2)
        several = cls(fields=("theme", "dark", "tags"), epsilon=2.0, steps=4, changes=20, queries="prefix")
        yield several, {"theme": theme, "dark": dark, "tags": tags}

    def reads(self) -> tuple[str, ...]:
        return self.fields or (self.field,)

    def statistic(self) -> ChangingShares:
        queries: Any = self.queries
        return ChangingShares(
            domains={name: self.setting.domains[name] for name in self.reads()},
            steps=self.steps,
            changes=self.changes,
            fanout=self.fanout,
            queries=queries,
            rule=self.mechanism or "ExSub",
        )

    def cost(self) -> Cost:
        return Cost(self.mechanism_for().event().spent, self.steps, once=True)

    def mechanisms(self) -> tuple[ReportFormat, ...]:
        return tuple(self.mechanism_for().parts.values())

    def terms(self) -> Terms:
        return replace(super().terms(), state=self.made_by(), parts=len(self.mechanism_for().parts))

    def promise(self, steps: int = 1, interval: int | None = None) -> Promise:
        return super().promise(1, self.steps * self.setting.step_seconds)

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        view, groups = self.statistic().view, self.setting.groups
        return change_protocol(self.mechanism_for(), first=first, view=view, groups=groups, memory=memory)

    def released_horizon(self) -> Horizon:
        return Horizon(self.mechanism_for())

    @property
    def arithmetic(self) -> int:
        return ARITHMETIC

    @property
    def horizon(self) -> int:
        return self.steps

    @property
    def summary(self) -> str:
        return f"changes, {self.steps} steps"

    def labels(self) -> tuple[str, ...]:
        return self.statistic().labels()

    def shape(self) -> Shape:
        size = self.statistic().size
        if self.fields:
            return Shape(form="shares", size=size, over_time=True, horizon=self.steps)
        return shares_shape(self.setting.domain, size, over_time=True, horizon=self.steps)

    def sums_to_one(self) -> bool:
        return False  # those who never recorded a value have none of them

    def knows_noise(self) -> bool:
        return False  # it differs from step to step, and with the level

    def least_error(self, n: int) -> float:
        # All reports of a horizon together are one report of epsilon, also of people whose values never change: then
        # every step, and the mean of any steps, has the same shares. Where the values of several fields are
        # independent, what is said of one of them is a report of epsilon on it.
        statistic, floor = self.statistic(), 0.0
        for name, domain in statistic.domains.items():
            most = domain.most if isinstance(domain, Sets) else 1
            floor += shares_floor(epsilon=self.epsilon, size=_field_bits(name, domain).entries, n=n, most=most)
        return math.sqrt(floor / statistic.size)

    def assumes(self) -> str:
        return f"{_QUERIES[self.queries]}, if all enrol at the start of a horizon and use all their changes"

    def default_title(self) -> str:
        return f"Of {listed(list(self.reads()))}: how common is each value?" if self.fields else super().default_title()

    def covers(self) -> str:
        return f"It is about {listed(list(self.fields))} together." if self.fields else ""

    def influence(self) -> Influence | str:
        return "a forger can choose the level that the fewest devices are on, and can send signs without enrolling"

    def sentence(self) -> str:
        mechanism, length = self.mechanism_for(), duration_text(self.steps * self.setting.step_seconds)
        levels, step = len(mechanism.parts), every(self.setting.step_seconds)
        covers = f"{self.covers()} " if self.fields else ""
        return (
            f"Time is divided into periods of {length}. The device is on one of {levels} levels, by a random number "
            "that has nothing to do with its value, and reports at the end of each of that level's intervals, at most "
            f"once {step}. {covers}It reports changes, at most {self.changes} in a period; a value that changes more "
            "often is reported as if it had stayed where it was. If everything that happens in a period is taken as "
            f"one value, all reports of the period together are {odds_text(mechanism.effective_epsilon)}. In the next "
            "period the device begins again, and spends as much again."
        )

    def linked(self) -> str:
        levels = len(self.mechanism_for().parts)
        return (
            f"The reports of {self.setting.name} carry the level of the device, one of {levels}, which is always "
            "the same. It comes from a random number, and reveals no value."
        )

    def findings(self) -> Iterator[Finding]:
        yield from super().findings()
        lasts = duration_text(self.steps * self.setting.step_seconds)
        yield Finding(
            "note",
            "changes",
            f"a device reports at most {self.changes} changes in {lasts}, and after that as if its value stayed the "
            "same: a larger number costs accuracy, a smaller one hides more changes",
        )


@lru_cache(maxsize=64)
def _symbols(
    units: int, dimension: int, steps: int, changes: int, one: bool, fanout: int, queries: Queries, rule: str
) -> ChangeStream:
    shape: dict[str, Any] = {"dimension": dimension, "steps": steps, "changes": changes, "one": one, "fanout": fanout}
    return planned_stream(STREAMS[rule](epsilon=epsilon_of(units), **shape), queries)
