"""The alarms of a collection: what they watch, how they share the allowed false alarms, and what they guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from hubbub.alarms.definition import DEFAULT_FALSE_ALARMS, AlarmDefinition, false_alarms_a_step, written_rate
from hubbub.alarms.forged import ForgedTest
from hubbub.alarms.limits import limits_for, median_delay
from hubbub.alarms.sequential import SequentialTest
from hubbub.collection.names import is_slug
from hubbub.core.errors import InvalidValue, at
from hubbub.core.spec import Json, spec_id
from hubbub.mechanisms.frequency.screen import can_screen
from hubbub.protocols.driver import Conversation
from hubbub.questions.collection import Collection


@dataclass(frozen=True, kw_only=True)
class WatchedQuantity:
    """A quantity that one sequential test watches, or the looks of a question's reports.

    Parameters
    ----------
    alarm, category, question, title
        The names of the alarm, of the category (empty if the alarm watches one quantity only) and of the question, and
        a description.
    false_alarms
        The average number of false alarms per step.
    meaning
        What the numbers of an answer mean. If it changes, the state of the test begins anew.
    """

    alarm: str
    category: str
    question: str
    title: str
    weights: tuple[float, ...]
    test: SequentialTest | ForgedTest
    false_alarms: float
    meaning: Mapping[str, Json]

    @property
    def key(self) -> str:
        """The key of its state in the store. Names of alarms have no colon; names of categories may."""
        return f"{self.alarm}:{self.category}" if self.category else self.alarm

    @property
    def fingerprint(self) -> str:
        """A hash of what the state depends on; not of the limits, which may change while the test goes on."""
        test = self.test
        return spec_id(
            {
                "question": self.question,
                "weights": list(self.weights),
                "sides": list(test.sides),
                "threshold": test.threshold,
                "ends": test.ends,
                "baseline": test.baseline,
                "means": dict(self.meaning),
            }
        )

    def delay(self, jump: float) -> int | None:
        """The median number of steps until a jump of `jump` standard errors of a step is found."""
        if isinstance(self.test, ForgedTest):
            return None  # no number is watched
        return median_delay(self.test.raises, jump, baseline=self.test.baseline if self.test.independent else 0)

    @property
    def threshold(self) -> float | None:
        """Where the alarm is raised; None for an alarm on a change."""
        return self.test.level if isinstance(self.test, ForgedTest) else self.test.threshold

    def stderr(self, stderr: float) -> float:
        """The standard error of the weighted sum, if each number has the given one and errors are independent."""
        return stderr * math.sqrt(sum(weight**2 for weight in self.weights))


MOST_WATCHED = 1000
_SHOWN = 20  # names in an error
_FALSE_ALARMS = "false_alarms"


@dataclass(frozen=True)
class AlarmPlan:
    """The alarms of a collection, by name, and the rate of false alarms of all of them together.

    Alarms with a rate of their own do not count in it.
    """

    alarms: Mapping[str, AlarmDefinition] = field(default_factory=dict)
    false_alarms: str = DEFAULT_FALSE_ALARMS

    def __post_init__(self) -> None:
        with at("alarms"):  # checked here, as nothing else reads it if there are no alarms
            written_rate(self.false_alarms)

    def spec(self) -> dict[str, Json]:
        """The alarms as JSON, with the keys that a collection file has."""
        return {_FALSE_ALARMS: self.false_alarms, **{name: alarm.spec() for name, alarm in self.alarms.items()}}

    @staticmethod
    def from_spec(spec: Any) -> AlarmPlan:
        """Read alarms, from JSON or from TOML."""
        if not isinstance(spec, Mapping):
            raise InvalidValue("alarms", spec, "a table")
        alarms = {}
        for name, alarm in spec.items():
            if name == _FALSE_ALARMS:
                continue
            if not is_slug(name):
                raise InvalidValue("alarms", name, "names of small letters, digits, - and _")
            with at(f"alarms.{name}"):
                alarms[name] = AlarmDefinition.from_spec(alarm)
        return AlarmPlan(alarms, spec.get(_FALSE_ALARMS, DEFAULT_FALSE_ALARMS))

    def watches(self, collection: Collection) -> tuple[WatchedQuantity, ...]:
        """Every watched quantity with its test. What cannot be watched is refused by its place in the file."""
        weights = {name: self._weights(name, alarm, collection) for name, alarm in self.alarms.items()}
        shared = sum(len(weights[name]) for name, alarm in self.alarms.items() if alarm.false_alarms is None)
        watches = [
            watch
            for name, alarm in self.alarms.items()
            for watch in self._watches_of(name, alarm, weights[name], collection, shared)
        ]
        if len(watches) > MOST_WATCHED:
            raise InvalidValue("alarms", f"{len(watches):,} watched quantities", f"at most {MOST_WATCHED:,}")
        return tuple(watches)

    def _watches_of(
        self,
        name: str,
        alarm: AlarmDefinition,
        weights: Mapping[str, tuple[float, ...]],
        collection: Collection,
        shared: int,
    ) -> Iterator[WatchedQuantity]:
        """The watched quantities of one alarm; `shared` is how many quantities share the plan's false alarms."""
        question = collection.questions[alarm.question]
        with at("alarms" if alarm.false_alarms is None else f"alarms.{name}"):
            allowed = false_alarms_a_step(alarm.false_alarms or self.false_alarms, collection.step_seconds)
        rate = allowed / (shared if alarm.false_alarms is None else len(weights))
        baseline, independent = alarm.baseline or 0, question.independent_steps()
        test: SequentialTest | ForgedTest
        if alarm.forged:
            test = ForgedTest(rate / collection.terms[alarm.question].rounds)
        else:
            test = SequentialTest(
                sides=alarm.sides,
                raises=limits_for(rate / len(alarm.sides), baseline=baseline, independent=independent),
                # Only a raised alarm can be cleared by mistake: the rate is not shared with others.
                clears=limits_for(allowed, independent=independent),
                threshold=alarm.threshold,
                ends=alarm.clears,
                baseline=baseline,
                independent=independent,
            )
        labels: list[Json] = list(question.labels() or ())
        fields: list[Json] = list(question.reads())
        meaning: dict[str, Json] = {"labels": labels, "fields": fields, "unit": question.shape().unit}
        for category, row in weights.items():
            yield WatchedQuantity(
                alarm=name,
                category=category,
                question=alarm.question,
                title=": ".join(filter(None, [alarm.title or _title(alarm), category])),
                weights=row,
                test=test,
                false_alarms=rate,
                meaning=meaning,
            )

    def _weights(self, name: str, alarm: AlarmDefinition, collection: Collection) -> dict[str, tuple[float, ...]]:
        """The weights of each watched quantity, by category."""
        with at(f"alarms.{name}"):
            if alarm.question not in collection.questions or collection.terms[alarm.question].study is not None:
                streams = [name for name in collection.questions if collection.terms[name].study is None]
                allowed = f"a question of every step: {', '.join(streams)}{_near(alarm.question, streams)}"
                raise InvalidValue("question", alarm.question, allowed)
            question = collection.questions[alarm.question]
            if alarm.forged:
                terms, protocol = collection.terms[alarm.question], collection.protocol(alarm.question)
                asks = Conversation(protocol, rounds=terms.rounds, parts=terms.parts).asks
                if not any(can_screen(ask.mechanism) for ask in asks):
                    allowed = "one whose forged reports can be told: by OUE, SUE, THE or basic RAPPOR, or OLH, BLH or "
                    allowed += "SOLH of up to 128 values; a single report of GRR looks genuine, whatever it says"
                    raise InvalidValue("question", alarm.question, allowed)
                return {"": ()}
            if not question.unbiased_steps():
                raise InvalidValue("question", alarm.question, "one whose steps have unbiased estimates of their own")
            labels = question.labels()
            if labels is None:
                raise InvalidValue("question", alarm.question, "one whose answers have few enough numbers to be named")
            return dict(_weights_by_category(alarm, labels))


def _weights_by_category(alarm: AlarmDefinition, labels: tuple[str, ...]) -> Iterator[tuple[str, tuple[float, ...]]]:
    if alarm.each:
        for category in labels:
            yield category, tuple(float(label == category) for label in labels)
    elif alarm.weights is not None:
        for label in alarm.weights:
            if label not in labels:
                allowed = f"weights of {', '.join(labels[:_SHOWN])}{_near(label, labels)}"
                raise InvalidValue(f"weights.{label}", alarm.weights[label], allowed)
        yield "", tuple(alarm.weights.get(label, 0.0) for label in labels)
    elif len(labels) == 1:
        yield "", (1.0,)
    else:
        allowed = f"weights by label, or each = true: an answer has {len(labels)} numbers"
        raise InvalidValue("weights", "nothing", allowed)


def _near(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _title(alarm: AlarmDefinition) -> str:
    if alarm.forged:
        return f"{alarm.question}: reports look forged"
    terms = [label if weight == 1 else f"{weight:g} {label}" for label, weight in (alarm.weights or {}).items()]
    return ": ".join(filter(None, [alarm.question, " + ".join(terms)]))


JUMPS = (1.0, 4.0)
"""The jumps whose delays are given, in standard errors of a step."""


def once_in(seconds: float) -> str:
    """A long time in words, rounded down."""
    for size, name in ((365.25 * 86400, "year"), (86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= 2 * size:
            return f"{int(seconds / size * (1 + 1e-9)):,} {name}s"
    return f"{seconds:.0f} seconds"


def false_alarms_a_day(watches: Sequence[WatchedQuantity], step_seconds: int) -> float:
    """The most false alarms per day to expect of all watched quantities together, on average, if no step is missed."""
    return sum(watch.false_alarms for watch in watches) * 86400 / step_seconds


def guarantee_text(watches: Sequence[WatchedQuantity], step_seconds: int) -> str:
    """The guarantee for the watched quantities of one alarm, or of all alarms of a collection."""
    rate = sum(watch.false_alarms for watch in watches)
    numbers = [watch for watch in watches if not isinstance(watch.test, ForgedTest)]
    learnt = [watch.test.threshold is None for watch in numbers]
    null = "nothing ever changes" if all(learnt) else "the truth is always at the threshold"
    if any(learnt) and not all(learnt):
        null = "the truth is always at the threshold, or never changes"
    if not numbers:
        null = "whatever the true shares are, while all reports are genuine"
    error = ", with the error of the baseline counted" if any(learnt) else ""
    of = f" of all {len(watches)} watched together" if len(watches) > 1 else ""
    even = "even if " if numbers else ""
    return f"at most one false alarm in {once_in(step_seconds / rate)} on average{of}, {even}{null}{error}"


def delays_text(watch: WatchedQuantity) -> str:
    """How fast jumps of some standard errors of a step are found."""
    if isinstance(watch.test, ForgedTest):
        return "forged reports that support too few or too many values, or the same ones together, in their step"
    texts: list[str] = []
    for jump in JUMPS:
        delay = watch.delay(jump)
        errors = f"{jump:g}" if texts else f"{jump:g} standard error"
        noticed = "not in time" if delay is None else f"within {delay} step{'s' * (delay != 1)}"
        texts.append(f"of {errors} {noticed}")
    return f"half of the jumps {', '.join(texts)}"
