"""Collections: the fields that devices record, the questions about them, the schedule, and the privacy budget.

A collection is signed, and never changed once it is served: a change is a new version.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hubbub.collection.names import is_slug
from hubbub.collection.setting import Setting, offset_of, shifted
from hubbub.collection.shuffle_route import HOP_SECONDS, ShuffleRoute
from hubbub.collection.terms import Terms, frame_for
from hubbub.core.domain import Code, Domain
from hubbub.core.errors import HubbubError, InvalidValue, at, check_integer
from hubbub.core.spec import Json, spec_id
from hubbub.ledger.promise import Budget, Promise
from hubbub.protocols.ask import CIRCLE

if TYPE_CHECKING:
    from hubbub.protocols.driver import Protocol
    from hubbub.protocols.memory import Memory

__all__ = ["OVERRIDES", "Collection"]

OVERRIDES = ("arc_below_100", "epsilon_above_8", "minimum_batch_below_20", "sent_as_it_is")
"""The checks that an author may override by giving a reason."""

MOST_DEVICES = 1 << 40
_LONGEST = 200
_DAY = 86400
INTEGER_RANGES = {
    "version": (1, 1 << 31),
    "step_seconds": (1, 366 * _DAY),
    "origin": (0, 1 << 40),
    "lateness_seconds": (0, 366 * _DAY),
    "minimum_batch": (1, 1 << 40),
    "minimum_arc": (1, CIRCLE),
    "retention_days": (1, 36525),
}


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A collection as client and server share it.

    Parameters
    ----------
    name, version, title
        A short name, a number that grows with every change, and a line for people.
    fields
        What programs record, by name.
    questions
        The questions about the fields, by name. Authors and servers have `hubbub.questions.Question` objects, from
        which terms, promises and the size of uploads are compiled. Devices know no kinds: a question is the JSON that
        was signed, and terms, promises and size are read from the signed document.
    budget
        The most that the collection may cost one device.
    trust
        "local": a report protects its sender from everyone, the server included. "shuffle": that holds too, and
        shufflers between devices and server hide which device sent which report.
    step_seconds, origin
        Step t begins at the Unix time origin + t step_seconds.
    lateness_seconds
        How long after an ask closes its reports are still counted.
    minimum_batch
        Releases of fewer reports are withheld.
    minimum_arc
        The shortest arc that devices answer, of 2^32 places: a shorter one could single out one person.
    planned_devices
        How many devices the collection is planned for; None if that is not stated. It says how many people the
        shortest arc is.
    retention_days
        How long reports are kept.
    overrides
        Checks that the author overrides, each with the reason.
    cover
        Whether a device that has no report to send, because it is not in the cohort or its budget is spent, sends a
        frame without a report. A network then cannot tell it from a device that answers.
    shuffle
        The shufflers, where trust is "shuffle"; None elsewhere.
    """

    name: str
    title: str
    fields: Mapping[str, Domain]
    questions: Mapping[str, Any]
    budget: Budget
    step_seconds: int
    version: int = 1
    trust: str = "local"
    origin: int = 0
    lateness_seconds: int = 0
    minimum_batch: int = 100
    minimum_arc: int = CIRCLE // 1000
    planned_devices: int | None = None
    retention_days: int = 90
    overrides: Mapping[str, str] = field(default_factory=dict)
    cover: bool = False
    shuffle: ShuffleRoute | None = None

    def __post_init__(self) -> None:
        _slug("name", self.name)
        _text("title", self.title)
        if self.trust not in ("local", "shuffle"):
            raise InvalidValue("trust", self.trust, '"local" or "shuffle"')
        for name, (low, high) in INTEGER_RANGES.items():
            value = getattr(self, name)
            check_integer(name, value, low, high)
        if self.planned_devices is not None:
            check_integer("planned_devices", self.planned_devices, 1, MOST_DEVICES)
        self._check_route()
        if not isinstance(self.cover, bool):
            raise InvalidValue("cover", self.cover, "true or false")
        if not isinstance(self.budget, Budget):
            raise InvalidValue("budget", self.budget, "a Budget")
        self._freeze("fields", Domain)
        self._freeze("questions", object)
        self._freeze("overrides", str)
        for name, domain in self.fields.items():
            with at(f"fields.{name}", domain="size"):
                domain.check_field()
        if not self.questions:
            raise InvalidValue("questions", {}, "at least one")
        for name, question in self.questions.items():
            if hasattr(question, "terms") != self.knows_kinds:
                raise InvalidValue(f"questions.{name}", question, "a Question")
        if self.knows_kinds:
            for name, question in self.questions.items():
                for key in question.reads():
                    if key not in self.fields:
                        raise InvalidValue(f"questions.{name}.field", key, f"one of {', '.join(self.fields)}")
                with at(f"questions.{name}", domain="field"):
                    question.check(self.setting(name))
        if len({offset_of(name) for name in self.questions}) < len(self.questions):
            raise InvalidValue("questions", list(self.questions), "names whose places on the circle differ")
        for name, reason in self.overrides.items():
            if name not in OVERRIDES:
                raise InvalidValue(f"overrides.{name}", reason, f"one of {', '.join(OVERRIDES)}")
            _text(f"overrides.{name}", reason)

    def _check_route(self) -> None:
        if (self.trust == "shuffle") != isinstance(self.shuffle, ShuffleRoute):
            raise InvalidValue("shuffle", self.shuffle, 'a route where trust is "shuffle", and nothing elsewhere')
        if self.shuffle is None:
            return
        hops = 2 * HOP_SECONDS * len(self.shuffle.shufflers)
        if self.lateness_seconds < hops:
            allowed = f"at least {hops}: half of it is for late reports, and half for the shufflers to hand them on"
            raise InvalidValue("lateness_seconds", self.lateness_seconds, allowed)

    def _freeze(self, name: str, kind: type) -> None:
        table = getattr(self, name)
        if not isinstance(table, Mapping):
            raise InvalidValue(name, table, "a table")
        for key, value in table.items():
            _slug(name, key)
            if not isinstance(value, kind):
                raise InvalidValue(f"{name}.{key}", value, f"a {kind.__name__}")
        # Sorted as in the signed document, so that every reader has the same order.
        object.__setattr__(self, name, MappingProxyType(dict(sorted(table.items()))))

    # -- time -------------------------------------------------------------------------------------------------

    def step_at(self, now: float) -> int:
        """The step that a Unix time is in; negative before the origin."""
        return math.floor((now - self.origin) / self.step_seconds)

    def opens(self, step: int) -> int:
        """When a step begins."""
        return self.origin + step * self.step_seconds

    def round_times(self, question: str, run: int, step: int, round: int) -> tuple[float, float]:
        """When a round of a question opens and closes.

        A step of R rounds is divided into R equal parts. A study has rounds of its own length, which follow each other
        from the beginning of the run; its step is 0.
        """
        terms = self.terms[question]
        if terms.study is not None:
            begins = terms.study.start + run * terms.study.every
            opens = begins + (round - 1) * terms.study.round_seconds
            return float(opens), float(opens + terms.study.round_seconds)
        begins, length = self.opens(step), self.step_seconds
        return begins + (round - 1) * length / terms.rounds, begins + round * length / terms.rounds

    def round_seconds(self, question: str) -> float:
        """How long a round of a question is."""
        opens, closes = self.round_times(question, 0, 0, 1)
        return closes - opens

    def closes(self, step: int, *, question: str | None = None, phase: int = 2) -> float:
        """When an ask of a step closes: at the end of its round (`phase`), or of the step where no question is
        given.
        """
        if question is None or phase >= self.terms[question].rounds:
            return self.opens(step + 1)
        return self.round_times(question, 0, step, phase)[1]

    @property
    def accepts_for(self) -> float:
        """For how many seconds after an ask closes its reports are accepted. Shufflers need the rest of the
        lateness.
        """
        return self.lateness_seconds if self.shuffle is None else self.lateness_seconds / 2

    @property
    def smallest_arc(self) -> int | None:
        """How many of the planned devices the shortest arc has; None if no size is stated."""
        if self.planned_devices is None:
            return None
        return (self.planned_devices * self.minimum_arc + CIRCLE // 2) // CIRCLE

    # -- devices ----------------------------------------------------------------------------------------------

    def encode(self, field: str, value: Any) -> Code:
        """The code of a value to record; a value outside the field's domain is refused."""
        domain = self._domain(field)
        try:
            return domain.code(value)
        except InvalidValue as error:
            raise InvalidValue(field, error.value, error.allowed) from None

    def missing(self, field: str, *, several: bool = False) -> Code | None:
        """The code of "nothing was recorded"; `several`: in a record of several fields."""
        domain = self._domain(field)
        return domain.absent() if several else domain.missing()

    def _domain(self, field: str) -> Domain:
        if field not in self.fields:
            raise InvalidValue("field", field, f"one of {', '.join(self.fields)}")
        return self.fields[field]

    @cached_property
    def frame_bytes(self) -> int:
        """The size of every upload in bytes: room for all answers of a device in a step, in whole KiB."""
        return frame_for(self.terms, self._layer_bytes)

    @property
    def _layer_bytes(self) -> int:
        return 0 if self.shuffle is None else self.shuffle.layer_bytes

    @cached_property
    def terms(self) -> Mapping[str, Terms]:
        """The terms of each question: what a device has to know of it."""
        compiled = {name: self._question(name).terms(self.setting(name)) for name in self.questions}
        return MappingProxyType(compiled)

    @cached_property
    def promises(self) -> tuple[Promise, ...]:
        """The promises about the whole collection."""
        from hubbub.collection.spending import promises_of  # devices need not load it

        return promises_of(self)

    # -- authors and servers ----------------------------------------------------------------------------------

    @property
    def knows_kinds(self) -> bool:
        """Whether the questions are `Question` objects, and not the signed JSON that a device has."""
        return not any(isinstance(question, Mapping) for question in self.questions.values())

    def _question(self, name: str) -> Any:
        question = self.questions[name]
        if isinstance(question, Mapping):
            raise HubbubError(f"{self.name} was read without the kinds of its questions: use questions.read_collection")
        return question

    def setting(self, name: str) -> Setting:
        """What a question knows of its collection."""
        domains = {key: self.fields[key] for key in self._question(name).reads()}
        return Setting(name, domains, self.step_seconds, self.origin)

    def protocol(self, question: str, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        """The protocol of a question, whose step 1 is `first`; with a memory it can stop and continue.

        Every question begins at its own place on the circle, so that streams ask different devices at the same time,
        and no two questions publish the same ask.
        """
        stream = self._question(question).protocol(self.setting(question), memory, first=first)
        return shifted(stream, offset_of(question), self.labels(question))

    def labels(self, question: str) -> tuple[str, ...] | None:
        """A name for each number of the answers to a question."""
        labels: tuple[str, ...] | None = self._question(question).labels(self.setting(question))
        return labels

    def shape(self, question: str) -> Any:
        """What the answers to a question look like: its `hubbub.questions.base.Shape`."""
        return self._question(question).shape(self.setting(question))

    # -- JSON -------------------------------------------------------------------------------------------------

    def spec(self) -> dict[str, Json]:
        """The collection as JSON."""
        from hubbub.collection.signed_form import document_of  # which imports this module

        return document_of(self)

    @cached_property
    def collection_id(self) -> str:
        """The hash of the spec."""
        return spec_id(self.spec())

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> Collection:
        """Read a signed collection as a device does, without the kinds of its questions.

        The document must have exactly the fields of its format, and the terms must fit the fields. Whether the terms
        are what the questions compile to is checked by `hubbub.questions.read_collection`, which authors and servers
        use.
        """
        from hubbub.collection.signed_form import read_signed

        return read_signed(spec)

    def __hash__(self) -> int:
        return hash(self.collection_id)

    def __reduce__(self) -> tuple[object, ...]:
        reader = import_module("hubbub.questions").read_collection if self.knows_kinds else Collection.from_spec
        return reader, (self.spec(),)


def _slug(name: str, value: object) -> None:
    if not is_slug(value):
        raise InvalidValue(name, value, "a name of at most 64 letters a-z, digits, - and _, that begins with a letter")


def _text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST or not value.isprintable():
        raise InvalidValue(name, value, f"a line of text of at most {_LONGEST} characters")
