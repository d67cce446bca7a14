"""Poisoning a question of a collection: forged devices answer every ask of the real protocol, and what that moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from hubbub.attacks.forging import Style, added, forge, repeated, strongest
from hubbub.attacks.outcome import AttackOutcome, AttackSetting, of_guesses, of_mean
from hubbub.authoring.answerable import recorded_values
from hubbub.authoring.forecast import Poisoning, poisoning
from hubbub.core.domain import Domain
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats, Reports
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.stateful import Stateful
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Release
from hubbub.protocols.statistic import MEAN, Frequencies, Spread
from hubbub.questions import Question, StatisticQuestion
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from hubbub.simulate.asked_question import NAME, AskedQuestion
from hubbub.simulate.conversation import run_question
from hubbub.simulate.devices import Stream
from hubbub.simulate.fleet import Wire
from hubbub.statistics.influence import Influence


class KeptValues(Stream):
    """Devices whose recorded values stay as they are."""

    steps = None

    def __init__(self, values: Sequence[object]) -> None:
        self._values, self.n = list(values), len(values)

    def values(self, step: int, start: int, stop: int) -> Any:
        return self._values[start:stop]

    def truth(self, step: int) -> Floats:
        raise NotImplementedError("what is true depends on the question")


@dataclass(frozen=True)
class Target:
    """One number of a question's answers, which forged devices raise."""

    collection: Collection
    name: str
    steps: int = 1
    strongest: dict[str, Reports] = field(default_factory=dict)
    """The strongest report of each mechanism that was looked for, by its id."""

    @property
    def question(self) -> StatisticQuestion:
        """The question."""
        question = self.collection.questions[self.name]
        assert isinstance(question, StatisticQuestion)
        return question

    def of(self, release: Release) -> Estimate:
        """The estimate that the target is the first number of."""
        return release.estimates[MEAN] if isinstance(self.question.statistic(), Spread) else release.estimate

    def wire(self, count: int, rng: Random, style: Style = "plain") -> Wire:
        """Forged devices that answer every ask with what raises the target most."""
        return added(partial(self._forged, count=count, rng=rng, style=style))

    def _forged(self, ask: Ask, *, count: int, rng: Random, style: Style) -> Reports:
        mechanism, statistic = ask.mechanism, self.question.statistic()
        assert isinstance(mechanism, Mechanism)
        if isinstance(statistic, Frequencies) and isinstance(mechanism, FrequencyOracle):
            return forge(mechanism, [0], count, rng, style)
        if isinstance(statistic, Spread):
            cells = mechanism.outputs()
            assert cells is not None
            return repeated(cells[-1:], count)  # the highest
        if mechanism.spec_id not in self.strongest:
            self.strongest[mechanism.spec_id] = strongest(mechanism, self._read, rng)
        return repeated(self.strongest[mechanism.spec_id], count)

    def _read(self, mechanism: ReportFormat, report: Reports) -> float:
        return float(self.question.statistic().read(mechanism, mechanism.accumulate(report)).value[0])

    def released(self, values: Sequence[object], rng: Random, wire: Wire | None = None) -> Estimate:
        """The estimate of the last step, of devices with these values."""
        stream = KeptValues(values)
        *_, last = run_question(self.collection, self.name, stream, rng, steps=self.steps, wire=wire)
        return self.of(last)


def asked(question: Mapping[str, Any], domain: Domain, *, steps: int = 1) -> Target:
    """A question in a collection of its own."""
    made = AskedQuestion(Question.make(**question, field="it"), {"it": domain})
    return Target(made.collection, NAME, steps)


def targets_of(collection: Collection) -> Iterator[tuple[Target, str | None]]:
    """The questions of a collection, each with the reason why it is not attacked here, or None."""
    for name, question in collection.questions.items():
        target = Target(collection, name, getattr(question, "w", 1) if collection.terms[name].study is None else 1)
        reason = None
        if not isinstance(question, StatisticQuestion):
            reason = "its answers are not one statistic"
        elif isinstance(question.influence(), str):
            reason = f"no bound is stated: {question.influence()}"
        elif isinstance(question.mechanism_for(), Stateful):
            reason = "its devices remember"
        yield target, reason


def population(target: Target, n: int, rng: Random) -> list[object]:
    """The values of n devices: all values alike often, in random order."""
    values = list(recorded_values(target.collection, target.collection.terms[target.name]))
    return [values[int(code)] for code in rng.below(len(values), n)]


def poison(case: str, target: Target, setting: AttackSetting, *, style: Style = "plain") -> Iterator[AttackOutcome]:
    """How far the target moves, next to what `hubbub check` says, and how often the wider interval misses the truth.

    The honest devices of both runs are the same, with the same random numbers: what differs is forged.
    """
    question = target.question
    stated, influence = poisoning(question, setting.forged), question.influence()
    assert stated.up is not None
    assert isinstance(influence, Influence)
    moved, missed, plain = [], 0, 0
    for run in range(setting.runs):
        values = population(target, setting.people, setting.rng(case, run, "values"))
        honest = target.released(values, setting.rng(case, run))
        wire = target.wire(setting.forgers, setting.rng(case, run, "forged"), style)
        forged = target.released(values, setting.rng(case, run), wire)
        moved.append(float(forged.value[0] - honest.value[0]))
        truth = _truth(target, values)
        if truth is not None:
            low, high = influence.honest(forged, stated.part)
            missed += not low[0] <= truth <= high[0]
            low, high = forged.interval()
            plain += not low[0] <= truth <= high[0]
    yield of_mean(f"{case}: raised by", moved, stated.up, unit=stated.unit, note=_turns(stated))
    if truth is not None:
        note = f"the plain 95% interval misses it in {plain} of {setting.runs} runs"
        yield of_guesses(f"{case}: wider interval misses", missed, setting.runs, 0.05, note)


def _turns(stated: Poisoning) -> str:
    return "" if stated.part == stated.forged else f"{stated.part:.1%} of the reports are forged: devices take turns"


def _truth(target: Target, values: Sequence[object]) -> float | None:
    """The true number, where values say it plainly."""
    statistic = target.question.statistic()
    if isinstance(statistic, Frequencies) and all(isinstance(value, int) for value in values):
        return float(np.mean([value == 0 for value in values]))
    return None


PROMISE = (
    "Forged reports move an answer that is a mean over reports by at most m/(n+m) (a - f): `hubbub check` prints it "
    "for each question. The wider interval of `--forged` holds the truth in 95% of cases."
)
