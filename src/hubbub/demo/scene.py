"""A scene of the live demonstration: what devices are asked, and what their owners hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from hubbub.alarms.plan import AlarmPlan
from hubbub.collection import Collection
from hubbub.demo.people import Owners, People, Riders, Speakers

Table = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Scene:
    """A collection of the demonstration, and the simulated people who answer it.

    Parameters
    ----------
    collection, question
        The collection, and the name of the one question that is shown.
    source
        Where the data is from, in a line.
    weights
        How common each value is: a row for each step, and the first row again after the last.
    silent
        The part of the people who have no value in a step.
    pooled
        Whether the truth is the same in every step, so that the mean over steps has a smaller error.
    times
        For each row of the weights, the time of the data, in words.
    histories
        For values that are followed from step to step, instead of weights: see `Owners`.
    amounts
        For a number: the amounts that the weights, in one row, belong to.
    texts
        For texts that nobody lists: the texts that the weights, in one row, belong to.
    alarms
        What the collector watches.
    """

    collection: Collection
    question: str
    source: str
    weights: Table
    silent: float
    pooled: bool
    times: tuple[str, ...] = ()
    histories: Sequence[Sequence[int]] = ()
    amounts: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    alarms: AlarmPlan = field(default_factory=AlarmPlan)

    @property
    def name(self) -> str:
        """The collection's name."""
        return self.collection.name

    def starting(self, origin: int) -> Scene:
        """The same scene, whose first step and first run begin at a Unix time."""
        questions = self.collection.questions
        if self.texts:
            begins = datetime.fromtimestamp(origin, UTC).isoformat()
            questions = {name: replace(question, start=begins) for name, question in questions.items()}
        return replace(self, collection=replace(self.collection, origin=origin, questions=questions))

    def people(self, n: int, seed: int, group: int) -> People | Owners | Riders | Speakers:
        """A group of n people who answer."""
        if self.texts:
            return Speakers(texts=self.texts, weights=self.weights[0], n=n, seed=seed, group=group)
        if not self.histories and not self.amounts:
            return People(weights=self.weights, silent=self.silent, n=n, seed=seed, group=group)
        shape = self.collection.questions[self.question].shape(self.collection.setting(self.question))
        size = shape.size
        if self.amounts:
            paid = {"amounts": self.amounts, "weights": self.weights[0], "low": shape.low, "high": shape.high}
            return Riders(**paid, size=size, n=n, seed=seed, group=group)
        return Owners(histories=self.histories, size=size, n=n, seed=seed, group=group)

    def when(self, step: int) -> str:
        """The time of a step in the data, in words; empty if the data has no times."""
        return self.times[step % len(self.times)] if self.times else ""
