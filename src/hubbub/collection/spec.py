"""Collections: what is asked of whom, how often, and at what price. Signed, and never changed once it is served."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from hubbub.collection import formats
from hubbub.collection.fields import Code, check_field, code_of, missing_code
from hubbub.collection.frame import entry_bytes, frame_bytes, largest_report
from hubbub.collection.locate import at
from hubbub.collection.question import QuestionSpec
from hubbub.collection.slug import is_slug
from hubbub.collection.terms import Terms, promises_of, terms_of
from hubbub.collection.turn import start_of
from hubbub.core.domain import Domain
from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json, canonical, integer, spec_id
from hubbub.privacy.budget import Budget
from hubbub.privacy.promise import Promise
from hubbub.protocols.cohort import CIRCLE
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory

__all__ = ["OVERRIDES", "Collection", "QuestionSpec"]

OVERRIDES = ("epsilon_above_8", "minimum_batch_below_20")
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
        What is asked of the fields, by name.
    budget
        The most that it may cost one device.
    trust
        "local": a report protects its sender from everyone, the server included.
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

    Example:
        >>> from hubbub import Categorical
        >>> collection = Collection(
        ...     name="themes",
        ...     title="Light or dark?",
        ...     fields={"theme": Categorical(["light", "dark"])},
        ...     questions={"popular": QuestionSpec(kind="histogram", field="theme", epsilon=1.0)},
        ...     budget=Budget.of(event=1.0),
        ...     step_seconds=3600,
        ... )
        >>> Collection.from_spec(collection.spec()) == collection
        True
        >>> collection.encode("theme", "dark"), collection.missing("theme")
        (1, 2)
        >>> collection.step_at(7200.5), collection.opens(2)
        (2, 7200)
    """

    name: str
    title: str
    fields: Mapping[str, Domain]
    questions: Mapping[str, QuestionSpec]
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
    _signed: ClassVar[dict[str, Json] | None] = None  # of an instance: what it was read from, in an older format

    def __post_init__(self) -> None:
        _slug("name", self.name)
        _text("title", self.title)
        if self.trust == "shuffle":
            raise InvalidValue("trust", self.trust, '"local": shuffling is planned, and not there yet')
        if self.trust != "local":
            raise InvalidValue("trust", self.trust, '"local"')
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InvalidValue(name, value, f"an integer from {low} to {high}")
        if not isinstance(self.cover, bool):
            raise InvalidValue("cover", self.cover, "true or false")
        if not isinstance(self.budget, Budget):
            raise InvalidValue("budget", self.budget, "a Budget")
        self._freeze("fields", Domain)
        self._freeze("questions", QuestionSpec)
        self._freeze("overrides", str)
        for name, domain in self.fields.items():
            with at(f"fields.{name}", domain="size"):
                check_field(domain)
        if not self.questions:
            raise InvalidValue("questions", {}, "at least one")
        for name, question in self.questions.items():
            if question.field not in self.fields:
                raise InvalidValue(f"questions.{name}.field", question.field, f"one of {', '.join(self.fields)}")
            with at(f"questions.{name}", domain="field"):
                question.question(self.fields[question.field])
        if len({start_of(name) for name in self.questions}) < len(self.questions):
            raise InvalidValue("questions", list(self.questions), "names whose places on the circle differ")
        for name, reason in self.overrides.items():
            if name not in OVERRIDES:
                raise InvalidValue(f"overrides.{name}", reason, f"one of {', '.join(OVERRIDES)}")
            _text(f"overrides.{name}", reason)

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
        """When a round of a question opens and closes: of R rounds, round j takes the j-th R-th of its step.

        Example:
            >>> from hubbub.authoring.toml import EXAMPLE, load_collection
            >>> load_collection(EXAMPLE).round_times("popular", 0, 2, 1)
            (7200.0, 10800.0)
        """
        rounds, length = self.terms[question].rounds, self.step_seconds
        begins = self.opens(step)
        return begins + (round - 1) * length / rounds, begins + round * length / rounds

    def closes(self, step: int, *, question: str | None = None, phase: int = 2) -> float:
        """When an ask of a step stops being answered: its end; half of it, for the first of an adaptive stream's two.

        Example:
            >>> from hubbub.authoring.toml import EXAMPLE, load_collection
            >>> load_collection(EXAMPLE).closes(0)
            3600
        """
        if phase == 1 and question is not None and self.questions[question].adaptive:
            return self.opens(step) + self.step_seconds / 2
        return self.opens(step + 1)

    # -- devices ----------------------------------------------------------------------------------------------

    def encode(self, field: str, value: Any) -> Code:
        """The code of a value to record; one that the field does not have is refused."""
        domain = self._domain(field)
        try:
            return code_of(domain, value)
        except InvalidValue as error:
            raise InvalidValue(field, error.value, error.allowed) from None

    def missing(self, field: str) -> Code:
        """The code of a field for which nothing was recorded."""
        return missing_code(self._domain(field))

    def _domain(self, field: str) -> Domain:
        if field not in self.fields:
            raise InvalidValue("field", field, f"one of {', '.join(self.fields)}")
        return self.fields[field]

    @cached_property
    def frame_bytes(self) -> int:
        """The size of every upload: room for all that a device may answer in a step, in whole kilobytes."""
        total = 0
        for name, question in self.questions.items():
            largest = largest_report(question, self.fields[question.field])
            total += entry_bytes(name, largest) * (2 if question.adaptive else 1)
        return frame_bytes(total)

    @cached_property
    def terms(self) -> Mapping[str, Terms]:
        """What a device has to know of each question."""
        return MappingProxyType({name: terms_of(self, name) for name in self.questions})

    @cached_property
    def promises(self) -> tuple[Promise, ...]:
        """What is promised of the whole."""
        return promises_of(self)

    # -- servers ----------------------------------------------------------------------------------------------

    def protocol(self, question: str, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        """The conversation of a question, whose step 1 is `first`; with a memory it can stop and go on.

        Example:
            >>> from hubbub.authoring.toml import EXAMPLE, load_collection
            >>> next(load_collection(EXAMPLE).protocol("popular")).standing
            True
        """
        return self.questions[question].protocol(self, question, memory, first=first)

    def labels(self, question: str) -> tuple[str, ...] | None:
        """A name for each number that answers a question."""
        return self.questions[question].labels(self.fields[self.questions[question].field])

    # -- JSON -------------------------------------------------------------------------------------------------

    def spec(self) -> dict[str, Json]:
        """The collection as JSON; one that was read from an older format stays as it was signed.

        Example:
            >>> from hubbub.authoring.toml import EXAMPLE, load_collection
            >>> load_collection(EXAMPLE).spec()["format"]
            2
        """
        if self._signed is not None:
            return self._signed
        plain: dict[str, Json] = {name: getattr(self, name) for name in (*_RANGES, "name", "title", "trust")}
        return {
            "format": formats.COLLECTION.version,
            **plain,
            "fields": {name: domain.spec() for name, domain in self.fields.items()},
            "questions": {name: question.spec() for name, question in self.questions.items()},
            "budget": self.budget.spec(),
            "overrides": dict(self.overrides),
            **({"cover": True} if self.cover else {}),
            "promises": [promise.spec() for promise in self.promises],
            "terms": {name: terms.spec() for name, terms in self.terms.items()},
        }

    @cached_property
    def collection_id(self) -> str:
        """The hash of the spec."""
        return spec_id(self.spec())

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> Collection:
        """Read a collection back, of this format or an older one; every field must be there, and no other.

        The promises and terms must be the very ones that the questions compile to. Format 1 had none.
        """
        present = formats.COLLECTION.upgrade(spec) if isinstance(spec, Mapping) and "format" in spec else {}
        compiled = {"promises", "terms"} if present and spec["format"] > 1 else set()
        wanted = {"format"} | {part.name for part in fields(Collection)} | compiled
        if set(present) | {"cover"} != wanted or present.get("cover", True) is not True:
            raise InvalidValue("collection", spec, f"exactly the fields {', '.join(sorted(wanted))}")
        given = {name: value for name, value in present.items() if name not in {"format"} | compiled}
        for name in _RANGES:
            given[name] = integer(name, given[name])
        for name in ("fields", "questions"):
            if not isinstance(given[name], Mapping):
                raise InvalidValue(name, given[name], "an object")
        domains, questions = {}, {}
        for name, domain in given["fields"].items():
            with at(f"fields.{name}"):
                domains[name] = Domain.from_spec(domain)
        for name, question in given["questions"].items():
            with at(f"questions.{name}"):
                questions[name] = QuestionSpec.from_spec(question)
        with at("budget"):
            given["budget"] = Budget.from_spec(given["budget"])
        made = Collection(**{**given, "fields": domains, "questions": questions})
        for name in compiled:
            if canonical(spec[name]) != canonical(made.spec()[name]):
                raise InvalidValue(name, spec[name], "what the collection's questions and limits compile to")
        if spec["format"] != present["format"]:
            object.__setattr__(made, "_signed", dict(spec))
        return made

    def __hash__(self) -> int:
        return hash(self.collection_id)

    def __reduce__(self) -> tuple[object, ...]:
        return Collection.from_spec, (self.spec(),)


def _slug(name: str, value: object) -> None:
    if not is_slug(value):
        raise InvalidValue(name, value, "a name of at most 64 letters a-z, digits, - and _, that begins with a letter")


def _text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST or not value.isprintable():
        raise InvalidValue(name, value, f"a line of text of at most {_LONGEST} characters")
