"""When a question is asked: the times of the rounds of its steps, or of the runs of a study."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hubbub.collection import Collection
from hubbub.collection.names import AnswerName
from hubbub.collection.terms import Terms
from hubbub.core.errors import InvalidValue


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
