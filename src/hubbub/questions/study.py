"""Questions that are studies: they begin at a time, are asked round by round, and end."""

from abc import abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime

from hubbub.collection.terms import Study
from hubbub.collection.time import duration_text, seconds_of
from hubbub.collection.time import every as every_text
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import units_of
from hubbub.ledger.promise import Promise, of_question
from hubbub.questions.base import Question
from hubbub.questions.spending import Cost
from hubbub.questions.words import odds_text

MOST_TURNS = 1000


@dataclass(frozen=True, kw_only=True)
class StudyQuestion(Question):
    """A study of one field: a device answers once in a run, with a report that spends epsilon.

    Parameters
    ----------
    field
        The field that is asked about.
    start
        When the first run begins, such as "2026-12-01T00:00Z".
    round
        How long a round is, such as "1d".
    every
        After how long the next run begins, such as "30d"; empty where there is one run.
    turns
        In how many runs a device takes part in one: the people are divided into as many parts, and run k asks part k.
    """

    field: str
    start: str
    round: str = "1d"
    every: str = ""
    turns: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("turns", self.turns, 1, MOST_TURNS)
        for name in ("round", "every") if self.every else ("round",):
            if not seconds_of(name, getattr(self, name)):
                raise InvalidValue(name, getattr(self, name), "a duration above 0")
        if self.turns > 1 and not self.every:
            raise InvalidValue("turns", self.turns, "1, where there is one run: `every` says when the next begins")
        self._begins()

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many rounds a run has."""

    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    def schedule(self) -> Study:
        """When it is asked; refused where a run would not end before the next."""
        length, period = seconds_of("round", self.round), seconds_of("every", self.every) if self.every else 0
        if 0 < period < self.rounds * length:
            rounds = f"{self.rounds} rounds of {duration_text(length)}"
            raise InvalidValue("every", self.every, f"nothing, or at least the {rounds} that a run has")
        return Study(self._begins(), length, period)

    def promise(self) -> Promise:
        """That as many consecutive runs as there are turns cost at most epsilon."""
        interval = self._interval()
        return Promise(
            units_of(self.epsilon),
            self.turns,
            interval,
            self._begins() % interval,
            scope=of_question(self.setting.name),
        )

    def cost(self) -> Cost:
        steps = max(1, self.turns * self._interval() // self.setting.step_seconds)
        return Cost(units_of(self.epsilon), steps, once=steps > 1)

    def answering(self) -> float:
        return 1 / self.turns

    def influence_of(self) -> str:
        return "in one run"

    @property
    def unit_of_time(self) -> str:
        """How often a device answers, in words."""
        if not self.every:
            return "once"
        return every_text(self.turns * seconds_of("every", self.every))

    def sentence(self) -> str:
        return f"One report, {self.unit_of_time}. It is {odds_text(self.epsilon)}."

    def _begins(self) -> int:
        try:
            start = datetime.fromisoformat(self.start)
        except ValueError:
            start = None
        if start is None or start.tzinfo is None or start < datetime(1970, 1, 1, tzinfo=UTC) or start.microsecond:
            raise InvalidValue("start", self.start, 'a time with its zone, such as "2026-12-01T00:00Z"')
        return int(start.timestamp())

    def _interval(self) -> int:
        study = self.schedule()
        return study.every or self.rounds * study.round_seconds
