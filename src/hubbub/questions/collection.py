"""Collections with the kinds of their questions, as authors and servers read them, and when each question is asked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from hubbub.collection.document import COMPILED, SignedCollection, check_document, read_parts, sorted_table
from hubbub.collection.names import AnswerName
from hubbub.collection.terms import MOST_GROUPS, Group, Terms, frame_for
from hubbub.core.errors import InvalidValue, at
from hubbub.core.estimate import Estimate
from hubbub.core.spec import Json, canonical
from hubbub.ledger.promise import Promise
from hubbub.protocols.ask import CIRCLE, Arc, Ask, offset_of
from hubbub.protocols.driver import Count, Protocol, Reply
from hubbub.protocols.memory import Memory
from hubbub.questions.base import Question, Setting
from hubbub.questions.spending import promises_of


@dataclass(frozen=True, kw_only=True)
class Collection(SignedCollection):
    """A collection with the kinds of its questions.

    What a device reads of the questions (their JSON and terms, the promises, the size of uploads) is compiled from
    them. All other parameters are those of a `SignedCollection`.

    Parameters
    ----------
    questions
        The questions about the fields, by name.
    """

    questions: Mapping[str, Question]
    question_specs: Mapping[str, Mapping[str, Json]] = field(init=False, repr=False, compare=False)
    terms: Mapping[str, Terms] = field(init=False, repr=False, compare=False)
    promises: tuple[Promise, ...] = field(init=False, repr=False, compare=False)
    frame_bytes: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Like cached properties, these are written into a frozen object once.
        parts = self.__dict__
        questions = parts["questions"] = sorted_table("questions", self.questions, Question)
        parts["question_specs"] = {name: question.spec() for name, question in questions.items()}
        super().__post_init__()
        bound: dict[str, Question] = {}
        groups = len(questions) if self.divide else 1
        if groups > MOST_GROUPS:
            raise InvalidValue("population.divide", self.divide, f"false: there are more than {MOST_GROUPS} questions")
        for name, question in questions.items():
            if self.divide and not question.in_groups:
                why = question.not_in_groups
                allowed = f"false: questions of kind {question.kind}, as {name}, are asked of all devices: {why}"
                raise InvalidValue("population.divide", self.divide, allowed)
            for key in question.reads():
                if key not in self.fields:
                    raise InvalidValue(f"questions.{name}.field", key, f"one of {', '.join(self.fields)}")
            domains = {key: self.fields[key] for key in question.reads()}
            bound[name] = question.bound(Setting(name, domains, self.step_seconds, self.origin, groups))
            with at(f"questions.{name}", domain="field"):
                bound[name].check()
                bound[name].check_consistency()
        parts["questions"] = MappingProxyType(bound)
        terms = {name: question.terms() for name, question in bound.items()}
        if groups > 1:
            terms = {
                name: replace(own, group=Group(number, groups)) for number, (name, own) in enumerate(terms.items())
            }
        parts["terms"] = MappingProxyType(terms)
        parts["promises"] = promises_of(self)
        parts["frame_bytes"] = frame_for(self.terms, self.sealed_bytes)

    def keeps_reports(self, question: str) -> bool:
        return self.questions[question].keeps or self.questions[question].searches

    def protocol(self, question: str, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        """The protocol of a question, whose step 1 is `first`; with a memory it can stop and continue.

        Every question begins at its own place on the circle, so that streams ask different devices at the same time,
        and no two questions publish the same ask.
        """
        asked = self.questions[question]
        return shifted(asked.protocol(memory, first=first), offset_of(question), asked.labels())

    __hash__ = SignedCollection.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return read_collection, (self.spec(),)


@dataclass(frozen=True)
class Schedule:
    """The times of a question's rounds. `number` is a step of the collection or, for a study, the number of a run."""

    collection: Collection
    question: str

    @property
    def terms(self) -> Terms:
        """The signed terms of the question."""
        return self.collection.terms[self.question]

    @property
    def is_study(self) -> bool:
        """Whether the question is a study: it has runs, which end, instead of steps."""
        return self.terms.study is not None

    def at(self, now: float) -> int:
        """The current step, or the latest run that has begun; negative before the first."""
        study = self.terms.study
        if study is None:
            return self.collection.step_at(now)
        if not study.every:
            return 0 if now >= study.start else -1
        return int(max(math.floor((now - study.start) / study.every), -1))

    def times(self, number: int, round: int) -> tuple[float, float]:
        """When a round of a step or a run opens and closes."""
        run, step = (number, 0) if self.is_study else (0, number)
        return self.collection.round_times(self.question, run, step, round)

    def opens(self, number: int) -> float:
        """When a step or a run begins; infinity for a run that a study without repetition does not have."""
        study = self.terms.study
        return math.inf if study is not None and number and not study.every else self.times(number, 1)[0]

    def ends(self, number: int) -> float:
        """When the last round of a step or a run closes."""
        return self.times(number, self.terms.rounds)[1]

    def name(self, number: int, round: int, part: int) -> AnswerName:
        """The name that reports to an ask carry."""
        run, step = (number, 0) if self.is_study else (0, number)
        return AnswerName(self.question, run=run, step=step, round=round, part=part)

    def check(self) -> None:
        """Refuse a lateness as long as a round: the next round can be decided only when late reports are in."""
        length = self.collection.round_seconds(self.question)
        if not self.collection.lateness_seconds < length:
            allowed = f"less than {length:g}, as {self.question} is asked"
            raise InvalidValue("schedule.lateness", self.collection.lateness_seconds, allowed)


def read_collection(spec: object) -> Collection:
    """Read a signed collection. It must have exactly the fields of its format.

    The terms, promises and size of uploads that are signed must be exactly what the questions compile to.
    """
    present = check_document(spec)
    questions = {}
    for name, question in present["questions"].items():
        with at(f"questions.{name}"):
            questions[name] = Question.from_spec(question)
    collection = Collection(**read_parts(present), questions=questions)
    compiled = collection.spec()
    for name in COMPILED:
        if canonical(present[name]) != canonical(compiled[name]):
            raise InvalidValue(name, present[name], "what the collection's questions and limits compile to")
    return collection


def shifted(stream: Protocol, start: int, labels: tuple[str, ...] | None) -> Protocol:
    """A protocol whose arcs are moved by `start` on the circle, and whose releases have labels.

    All arcs move by the same distance, so that disjoint arcs stay disjoint. Asks carry codes and no labels, which keeps
    them short.
    """
    reply: Reply = None
    while True:
        try:
            message = stream.send(reply)
        except StopIteration:
            return
        if isinstance(message, Ask):
            message = _shifted(message, start)
        elif isinstance(message, list):
            message = [_shifted(ask, start) for ask in message]
        elif isinstance(message, Count):
            message = replace(message, ask=_shifted(message.ask, start))
        elif labels is not None:
            message = replace(
                message, estimates={name: _named(estimate, labels) for name, estimate in message.estimates.items()}
            )
        reply = yield message


def _named(estimate: Estimate, labels: tuple[str, ...]) -> Estimate:
    fits = estimate.labels is None and len(labels) == len(estimate)
    return replace(estimate, labels=labels) if fits else estimate


def _shifted(ask: Ask, start: int) -> Ask:
    following = None if ask.following is None else _shifted(ask.following, start)
    return replace(ask, cohort=Arc((ask.cohort.start + start) % CIRCLE, ask.cohort.length), following=following)
