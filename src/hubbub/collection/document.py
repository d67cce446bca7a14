"""Signed collections: the fields that devices record, the questions about them, the schedule, and the privacy budget.

A collection is signed, and never changed once it is served: a change is a new version. Devices know no kinds of
questions; authors and servers, which do, have a `hubbub.questions.Collection`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

from hubbub.collection.names import is_slug
from hubbub.collection.sealing import COLLECTION
from hubbub.collection.shuffle_route import HOP_SECONDS, ROUTES, TRUSTS, Route
from hubbub.collection.terms import Terms, frame_for
from hubbub.core.domain import Code, Domain
from hubbub.core.errors import InvalidValue, at, check_integer
from hubbub.core.spec import Json, integer, spec_id
from hubbub.ledger.promise import Budget, Promise
from hubbub.protocols.ask import CIRCLE, offset_of

__all__ = ["COMPILED", "OVERRIDES", "SignedCollection", "check_document", "read_parts", "sorted_table"]

Value = TypeVar("Value")

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
COMPILED = ("promises", "terms", "frame_bytes")
"""The fields of a signed document that are compiled from its questions."""


@dataclass(frozen=True, kw_only=True)
class SignedCollection:
    """A collection as it is signed, and as a device reads it.

    Parameters
    ----------
    name, version, title
        A short name, a number that grows with every change, and a line for people.
    fields
        What programs record, by name.
    question_specs
        The questions about the fields, by name, as JSON.
    terms
        The terms of each question: what a device has to know of it.
    promises
        The promises about the whole collection.
    frame_bytes
        The size of every upload in bytes: room for all answers of a device in a step, in whole KiB.
    budget
        The most that the collection may cost one device.
    trust
        "local": a report protects its sender from everyone, the server included. "shuffle" and "oblivious": that holds
        too, and shufflers between devices and server hide which device sent which report.
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
        The shufflers; None where trust is "local".
    divide
        Whether every device answers one question, which its place on the circle decides, instead of all of them.
    """

    name: str
    title: str
    fields: Mapping[str, Domain]
    question_specs: Mapping[str, Mapping[str, Json]]
    terms: Mapping[str, Terms]
    promises: tuple[Promise, ...]
    frame_bytes: int
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
    shuffle: Route | None = None
    divide: bool = False

    def __post_init__(self) -> None:
        _slug("name", self.name)
        _text("title", self.title)
        if self.trust not in TRUSTS:
            raise InvalidValue("trust", self.trust, f"one of {', '.join(TRUSTS)}")
        for name, (low, high) in INTEGER_RANGES.items():
            value = getattr(self, name)
            check_integer(name, value, low, high)
        if self.planned_devices is not None:
            check_integer("planned_devices", self.planned_devices, 1, MOST_DEVICES)
        self._check_route()
        for name in ("cover", "divide"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidValue(name, getattr(self, name), "true or false")
        if not isinstance(self.budget, Budget):
            raise InvalidValue("budget", self.budget, "a Budget")
        self._freeze("fields", Domain)
        self._freeze("question_specs", Mapping, "questions")
        self._freeze("overrides", str)
        for name, domain in self.fields.items():
            with at(f"fields.{name}", domain="size"):
                domain.check_field()
        names = list(self.question_specs)
        if not names:
            raise InvalidValue("questions", {}, "at least one")
        if len(set(map(offset_of, names))) < len(names):
            raise InvalidValue("questions", names, "names whose places on the circle differ")
        for name, reason in self.overrides.items():
            if name not in OVERRIDES:
                raise InvalidValue(f"overrides.{name}", reason, f"one of {', '.join(OVERRIDES)}")
            _text(f"overrides.{name}", reason)

    def _check_route(self) -> None:
        if type(self.shuffle) is not ROUTES.get(self.trust, type(None)):
            raise InvalidValue("shuffle", self.shuffle, f"the route of trust {self.trust!r}; none where it is 'local'")
        if self.shuffle is None:
            return
        hops = 2 * HOP_SECONDS * self.shuffle.turns
        if self.lateness_seconds < hops:
            allowed = f"at least {hops}: half of it is for late reports, and half for the shufflers to hand them on"
            raise InvalidValue("lateness_seconds", self.lateness_seconds, allowed)

    def _freeze(self, name: str, kind: type, title: str = "") -> None:
        # Sorted as in the signed document, so that every reader has the same order.
        table: Mapping[str, object] = sorted_table(title or name, getattr(self, name), kind)
        object.__setattr__(self, name, table)

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

    def sealed_bytes(self, report_bytes: int) -> int:
        """The size of what one receiver gets of a report of a given size: a shuffler, or the collector."""
        return report_bytes if self.shuffle is None else self.shuffle.sealed_bytes(report_bytes)

    def keeps_reports(self, question: str) -> bool:
        """Whether single reports are kept. A device knows no kinds, and only sees the key that asks for it."""
        return self.question_specs[question].get("keep_reports") is True

    # -- JSON -------------------------------------------------------------------------------------------------

    def spec(self) -> dict[str, Json]:
        """The collection as JSON, in the present format, which is signed."""
        plain: dict[str, Json] = {name: getattr(self, name) for name in (*INTEGER_RANGES, "name", "title", "trust")}
        return {
            "format": COLLECTION.version,
            **plain,
            "fields": {name: domain.spec() for name, domain in self.fields.items()},
            "questions": {name: dict(question) for name, question in self.question_specs.items()},
            "budget": self.budget.spec(),
            "overrides": dict(self.overrides),
            **{name: True for name in ("cover", "divide") if getattr(self, name)},
            **({} if self.planned_devices is None else {"planned_devices": self.planned_devices}),
            **({} if self.shuffle is None else {"shuffle": self.shuffle.spec()}),
            "promises": [promise.spec() for promise in self.promises],
            "terms": {name: terms.spec() for name, terms in self.terms.items()},
            "frame_bytes": self.frame_bytes,
        }

    @cached_property
    def collection_id(self) -> str:
        """The hash of the spec."""
        return spec_id(self.spec())

    @staticmethod
    def from_spec(spec: object) -> SignedCollection:
        """Read a signed collection as a device does, without the kinds of its questions.

        The document must have exactly the fields of its format, and the terms must fit the fields. Whether the terms
        are what the questions compile to is checked by `hubbub.questions.read_collection`, which authors and servers
        use.
        """
        present = check_document(spec)
        if not isinstance(present["promises"], list):
            raise InvalidValue("promises", present["promises"], "a list")
        with at("promises"):
            promises = tuple(Promise.from_spec(promise) for promise in present["promises"])
        collection = SignedCollection(
            **read_parts(present),
            question_specs=present["questions"],
            terms=_read_terms(present),
            promises=promises,
            frame_bytes=integer("frame_bytes", present["frame_bytes"]),
        )
        needed = frame_for(collection.terms, collection.sealed_bytes)
        if collection.frame_bytes != needed:
            raise InvalidValue("frame_bytes", collection.frame_bytes, f"{needed}, which the largest answers need")
        return collection

    def __hash__(self) -> int:
        return hash(self.collection_id)

    def __reduce__(self) -> tuple[object, ...]:
        return SignedCollection.from_spec, (self.spec(),)


def check_document(spec: object) -> dict[str, Any]:
    """A signed document, upgraded to the present format; refused unless it has exactly the fields of that."""
    present = COLLECTION.upgrade(spec) if isinstance(spec, Mapping) and "format" in spec else {}
    expected = {"format", "questions"} | {part.name for part in fields(SignedCollection)} - {"question_specs"}
    redundant = any(present.get(name, True) is not True for name in ("cover", "divide"))
    redundant = redundant or any(present.get(name, "") is None for name in ("planned_devices", "shuffle"))
    if set(present) | {"cover", "divide", "planned_devices", "shuffle"} != expected or redundant:
        raise InvalidValue("collection", spec, f"exactly the fields {', '.join(sorted(expected))}")
    for name in ("fields", "questions"):
        if not isinstance(present[name], Mapping):
            raise InvalidValue(name, present[name], "an object")
    return present


def read_parts(present: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a checked document that are neither questions nor compiled from them."""
    values = {name: value for name, value in present.items() if name not in ("format", "questions", *COMPILED)}
    for name in (*INTEGER_RANGES, *({"planned_devices"} & values.keys())):
        values[name] = integer(name, values[name])
    domains = {}
    for name, domain in values["fields"].items():
        with at(f"fields.{name}"):
            domains[name] = Domain.from_spec(domain)
    with at("budget"):
        values["budget"] = Budget.from_spec(values["budget"])
    if "shuffle" in values:
        with at("shuffle"):
            if values["trust"] not in ROUTES:
                raise InvalidValue("trust", values["trust"], f"one of {', '.join(ROUTES)}, where there are shufflers")
            values["shuffle"] = ROUTES[values["trust"]].from_spec(values["shuffle"])
    return {**values, "fields": domains}


def _read_terms(present: Mapping[str, Any]) -> Mapping[str, Terms]:
    spec, names, known = present["terms"], sorted(present["questions"]), present["fields"]
    if not isinstance(spec, Mapping) or spec.keys() != set(names):
        raise InvalidValue("terms", spec, "the terms of each question, and no others")
    terms = {}
    for name in names:
        with at(f"terms.{name}"):
            terms[name] = Terms.from_spec(spec[name], name)
            for key in terms[name].fields:
                if key not in known:
                    raise InvalidValue("fields", key, f"one of {', '.join(known)}")
    return MappingProxyType(terms)


def sorted_table(name: str, table: object, kind: type[Value]) -> Mapping[str, Value]:
    """A table of values of one type by name, sorted by name; anything else is refused."""
    if not isinstance(table, Mapping):
        raise InvalidValue(name, table, "a table")
    for key, value in table.items():
        _slug(name, key)
        if not isinstance(value, kind):
            raise InvalidValue(f"{name}.{key}", value, f"a {kind.__name__}")
    return MappingProxyType(dict(sorted(table.items())))


def _slug(name: str, value: object) -> None:
    if not is_slug(value):
        raise InvalidValue(name, value, "a name of at most 64 letters a-z, digits, - and _, that begins with a letter")


def _text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST or not value.isprintable():
        raise InvalidValue(name, value, f"a line of text of at most {_LONGEST} characters")
