"""Collections: what is asked of whom, how often, and at what price. Signed, and never changed once it is served."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from hubbub.collection import formats
from hubbub.collection.error_path import at
from hubbub.collection.frame import frame_for
from hubbub.collection.names import is_slug
from hubbub.collection.offset import offset_of, shifted
from hubbub.collection.setting import Setting
from hubbub.collection.shuffle_route import HOP_SECONDS, ShuffleRoute
from hubbub.collection.terms import Terms
from hubbub.core.domain import Code, Domain
from hubbub.core.errors import HubbubError, InvalidValue, check_integer
from hubbub.core.hashing import BEST_HASH, FIRST_HASH, HASHES
from hubbub.core.spec import Json, integer, spec_id
from hubbub.privacy.budget import Budget
from hubbub.privacy.promise import Promise
from hubbub.protocols.cohort import CIRCLE

if TYPE_CHECKING:
    from hubbub.protocols.driver import Protocol
    from hubbub.protocols.memory import Memory

__all__ = ["OVERRIDES", "Collection"]

OVERRIDES = ("epsilon_above_8", "minimum_batch_below_20", "sent_as_it_is")
"""What an author may allow against advice, by giving a reason."""

_LONGEST = 200
_DAY = 86400
_RANGES = {
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
    """What devices are asked, as client and server share it.

    Parameters
    ----------
    name, version, title
        A short name, a number that grows with every change, and a line for people.
    fields
        What programs record, by name.
    questions
        What is asked of the fields, by name: of a `hubbub.questions.Question`, the terms, promises and size of uploads
        are compiled. On a device, which knows no kinds, each is the JSON that was signed, and they are read with it.
    budget
        The most that it may cost one device.
    trust
        "local": a report protects its sender from everyone, the server included. "shuffle": it does so still, and
        shufflers between devices and server make the server forget whose report is whose.
    step_seconds, origin
        Step t is the time from origin + t step_seconds, a Unix time, to the next.
    lateness_seconds
        How long after an ask closes its reports are still counted.
    minimum_batch
        Releases of fewer reports are withheld.
    minimum_arc
        Of 2^32 places, the shortest arc that devices answer: a shorter one could search out one person.
    retention_days
        How long reports are kept.
    overrides
        Advice that the author set aside, with the reason.
    cover
        Whether a device that is asked and has nothing to send, because it is not its turn or its budget is spent, sends
        a frame without a report: a network then cannot tell it from one that answers.
    hash
        The hash function that mechanisms are compiled with; a signed document without it means "mix32", the first.
    shuffle
        Who shuffles, where that is whom one trusts; None elsewhere.

    Example:
        >>> from hubbub import Categorical
        >>> from hubbub.questions import Question, read_collection
        >>> collection = Collection(
        ...     name="themes",
        ...     title="Light or dark?",
        ...     fields={"theme": Categorical(["light", "dark"])},
        ...     questions={"popular": Question.make("histogram", field="theme", epsilon=1.0)},
        ...     budget=Budget.of(event=1.0),
        ...     step_seconds=3600,
        ... )
        >>> read_collection(collection.spec()) == collection
        True
        >>> Collection.from_spec(collection.spec()).terms == collection.terms
        True
        >>> collection.encode("theme", "dark"), collection.missing("theme")
        (1, 2)
        >>> collection.step_at(7200.5), collection.opens(2)
        (2, 7200)
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
    retention_days: int = 90
    overrides: Mapping[str, str] = field(default_factory=dict)
    cover: bool = False
    hash: str = BEST_HASH
    shuffle: ShuffleRoute | None = None
    _signed: ClassVar[dict[str, Json] | None] = None  # of an instance: what it was read from, in an older format

    def __post_init__(self) -> None:
        _slug("name", self.name)
        _text("title", self.title)
        if self.trust not in ("local", "shuffle"):
            raise InvalidValue("trust", self.trust, '"local" or "shuffle"')
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            check_integer(name, value, low, high)
        self._check_route()
        if not isinstance(self.cover, bool):
            raise InvalidValue("cover", self.cover, "true or false")
        if self.hash not in HASHES:
            raise InvalidValue("hash", self.hash, f"one of {', '.join(HASHES)}")
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
        given = getattr(self, name)
        if not isinstance(given, Mapping):
            raise InvalidValue(name, given, "a table")
        for key, value in given.items():
            _slug(name, key)
            if not isinstance(value, kind):
                raise InvalidValue(f"{name}.{key}", value, f"a {kind.__name__}")
        # Sorted, because a signed collection is: every holder sees one order.
        object.__setattr__(self, name, MappingProxyType(dict(sorted(given.items()))))

    # -- time -------------------------------------------------------------------------------------------------

    def step_at(self, now: float) -> int:
        """The step that a Unix time is in; negative before the origin."""
        return math.floor((now - self.origin) / self.step_seconds)

    def opens(self, step: int) -> int:
        """When a step begins."""
        return self.origin + step * self.step_seconds

    def round_times(self, question: str, run: int, step: int, round: int) -> tuple[float, float]:
        """When a round of a question opens and closes.

        Of R rounds, round j takes the j-th R-th of its step. A study has rounds of its own length: they follow each
        other from the beginning of the run, and its step is 0.

        Example:
            >>> from hubbub.authoring.toml import EXAMPLE, load_collection
            >>> load_collection(EXAMPLE).round_times("popular", 0, 2, 1)
            (7200.0, 10800.0)
        """
        terms = self.terms[question]
        if terms.study is not None:
            begins = terms.study.start + run * terms.study.every
            opens = begins + (round - 1) * terms.study.round_seconds
            return float(opens), float(opens + terms.study.round_seconds)
        begins, length = self.opens(step), self.step_seconds
        return begins + (round - 1) * length / terms.rounds, begins + round * length / terms.rounds

    def closes(self, step: int, *, question: str | None = None, phase: int = 2) -> float:
        """When an ask of a step stops being answered: the end of its round; of the step, where no round is named.

        Example:
            >>> from hubbub.authoring.toml import EXAMPLE, load_collection
            >>> load_collection(EXAMPLE).closes(0)
            3600
        """
        if question is None or phase >= self.terms[question].rounds:
            return self.opens(step + 1)
        return self.round_times(question, 0, step, phase)[1]

    @property
    def taken_for(self) -> float:
        """Seconds after the close of an ask for which reports are taken; shufflers need the rest of the lateness.

        Example:
            >>> from hubbub.authoring.toml import EXAMPLE, load_collection
            >>> load_collection(EXAMPLE).taken_for
            600
        """
        return self.lateness_seconds if self.shuffle is None else self.lateness_seconds / 2

    # -- devices ----------------------------------------------------------------------------------------------

    def encode(self, field: str, value: Any) -> Code:
        """The code of a value to record; one that the field does not have is refused."""
        domain = self._domain(field)
        try:
            return domain.code(value)
        except InvalidValue as error:
            raise InvalidValue(field, error.value, error.allowed) from None

    def missing(self, field: str, *, several: bool = False) -> Code | None:
        """The code of a field for which nothing was recorded."""
        domain = self._domain(field)
        return domain.absent() if several else domain.missing()

    def _domain(self, field: str) -> Domain:
        if field not in self.fields:
            raise InvalidValue("field", field, f"one of {', '.join(self.fields)}")
        return self.fields[field]

    @cached_property
    def frame_bytes(self) -> int:
        """The size of every upload: room for all that a device may answer in a step, in whole kilobytes."""
        return frame_for(self.terms, self._layer_bytes)

    @property
    def _layer_bytes(self) -> int:
        return 0 if self.shuffle is None else self.shuffle.layer_bytes

    @cached_property
    def terms(self) -> Mapping[str, Terms]:
        """What a device has to know of each question."""
        compiled = {name: self._question(name).terms(self.setting(name)) for name in self.questions}
        return MappingProxyType(compiled)

    @cached_property
    def promises(self) -> tuple[Promise, ...]:
        """What is promised of the whole."""
        from hubbub.collection.spending import promises_of  # which devices need not load

        return promises_of(self)

    # -- authors and servers ----------------------------------------------------------------------------------

    @property
    def knows_kinds(self) -> bool:
        """Whether its questions are what their kinds make of them, and not the signed JSON alone."""
        return not any(isinstance(question, Mapping) for question in self.questions.values())

    def _question(self, name: str) -> Any:
        question = self.questions[name]
        if isinstance(question, Mapping):
            raise HubbubError(f"{self.name} was read without the kinds of its questions: use questions.read_collection")
        return question

    def setting(self, name: str) -> Setting:
        """What a question is given.

        Example:
            >>> from hubbub.authoring.toml import EXAMPLE, load_collection
            >>> load_collection(EXAMPLE).setting("popular").step_seconds
            3600
        """
        domains = {key: self.fields[key] for key in self._question(name).reads()}
        return Setting(name, domains, self.step_seconds, self.origin, self.hash)

    def protocol(self, question: str, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        """The conversation of a question, whose step 1 is `first`; with a memory it can stop and go on.

        Every question begins at a place of its own on the circle: streams take turns with different devices, and no
        two questions make the same ask, which a report could not tell apart.

        Example:
            >>> from hubbub.authoring.toml import EXAMPLE, load_collection
            >>> next(load_collection(EXAMPLE).protocol("popular")).standing
            True
        """
        stream = self._question(question).protocol(self.setting(question), memory, first=first)
        return shifted(stream, offset_of(question), self.labels(question))

    def labels(self, question: str) -> tuple[str, ...] | None:
        """A name for each number that answers a question."""
        labels: tuple[str, ...] | None = self._question(question).labels(self.setting(question))
        return labels

    # -- JSON -------------------------------------------------------------------------------------------------

    def spec(self) -> dict[str, Json]:
        """The collection as JSON; one that was read from an older format stays as it was signed.

        Example:
            >>> from hubbub.authoring.toml import EXAMPLE, load_collection
            >>> load_collection(EXAMPLE).spec()["format"]
            3
        """
        if self._signed is not None:
            return self._signed
        plain: dict[str, Json] = {name: getattr(self, name) for name in (*_RANGES, "name", "title", "trust")}
        return {
            "format": formats.COLLECTION.version,
            **plain,
            "fields": {name: domain.spec() for name, domain in self.fields.items()},
            "questions": {name: _json(question) for name, question in self.questions.items()},
            "budget": self.budget.spec(),
            "overrides": dict(self.overrides),
            **({"cover": True} if self.cover else {}),
            **({"hash": self.hash} if self.hash != FIRST_HASH else {}),
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
    def from_spec(spec: Mapping[str, Any]) -> Collection:
        """Read a signed collection as a device does, without the kinds of its questions.

        Every field must be there, and no other. The terms must fit the fields and each other; that they are what the
        questions compile to is for `hubbub.questions.read_collection` to check, which authors and servers use. An older
        format had other terms or none: they are compiled from its questions, for which the kinds are loaded.
        """
        present = check_document(spec)
        if spec["format"] != present["format"]:
            older: Collection = import_module("hubbub.questions").read_collection(spec)
            return older
        made = read_document(present, present["questions"])
        terms = _read_terms(made, present["terms"])
        promises = present["promises"]
        if not isinstance(promises, list):
            raise InvalidValue("promises", promises, "a list")
        with at("promises"):
            compiled = tuple(Promise.from_spec(promise) for promise in promises)
        size = integer("frame_bytes", present["frame_bytes"])
        needed = frame_for(terms, made._layer_bytes)
        if size != needed:
            raise InvalidValue("frame_bytes", size, f"{needed}, which the largest answers need")
        made.__dict__.update(terms=terms, promises=compiled, frame_bytes=size)
        return made

    def __hash__(self) -> int:
        return hash(self.collection_id)

    def __reduce__(self) -> tuple[object, ...]:
        reader = import_module("hubbub.questions").read_collection if self.knows_kinds else Collection.from_spec
        return reader, (self.spec(),)


COMPILED = ("promises", "terms", "frame_bytes")
"""What a signed collection says beside what its author wrote; of older formats, what `_COMPILED` says."""
_COMPILED: dict[int, tuple[str, ...]] = {1: (), 2: ("promises", "terms")}


def check_document(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A signed document in the present format, if it has exactly the fields of its own.

    Example:
        >>> check_document({"format": 3})
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: collection: got {'format': 3}; allowed: exactly the fields budget, cover, ...
    """
    present = formats.COLLECTION.upgrade(spec) if isinstance(spec, Mapping) and "format" in spec else {}
    compiled = _COMPILED.get(spec["format"], COMPILED) if present else COMPILED
    wanted = {"format"} | {part.name for part in fields(Collection)} | set(compiled)
    unspelt = present.get("cover", True) is not True or present.get("hash") == FIRST_HASH
    unspelt = unspelt or ("shuffle" in present and present["shuffle"] is None)
    if set(present) | {"cover", "hash", "shuffle"} != wanted or unspelt:
        raise InvalidValue("collection", spec, f"exactly the fields {', '.join(sorted(wanted))}")
    for name in ("fields", "questions"):
        if not isinstance(present[name], Mapping):
            raise InvalidValue(name, present[name], "an object")
    return present


def read_document(present: Mapping[str, Any], questions: Mapping[str, Any]) -> Collection:
    """The collection of a checked document, with these questions."""
    given = {"hash": FIRST_HASH} | {name: value for name, value in present.items() if name not in ("format", *COMPILED)}
    for name in _RANGES:
        given[name] = integer(name, given[name])
    domains = {}
    for name, domain in given["fields"].items():
        with at(f"fields.{name}"):
            domains[name] = Domain.from_spec(domain)
    with at("budget"):
        given["budget"] = Budget.from_spec(given["budget"])
    if "shuffle" in given:
        with at("shuffle"):
            given["shuffle"] = ShuffleRoute.from_spec(given["shuffle"])
    return Collection(**{**given, "fields": domains, "questions": questions})


def _read_terms(collection: Collection, spec: Any) -> Mapping[str, Terms]:
    if not isinstance(spec, Mapping) or spec.keys() != collection.questions.keys():
        raise InvalidValue("terms", spec, "those of each question, and no other")
    terms = {}
    for name in collection.questions:
        with at(f"terms.{name}"):
            terms[name] = Terms.from_spec(spec[name], name)
            for key in terms[name].fields:
                if key not in collection.fields:
                    raise InvalidValue("fields", key, f"one of {', '.join(collection.fields)}")
    return MappingProxyType(terms)


def _json(question: Any) -> dict[str, Json]:
    return dict(question) if isinstance(question, Mapping) else question.spec()


def _slug(name: str, value: object) -> None:
    if not is_slug(value):
        raise InvalidValue(name, value, "a name of at most 64 letters a-z, digits, - and _, that begins with a letter")


def _text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST or not value.isprintable():
        raise InvalidValue(name, value, f"a line of text of at most {_LONGEST} characters")
