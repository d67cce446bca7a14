"""Collections that tests share."""

from typing import Any

import pytest

from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.questions.collection import Collection

FIELDS: dict[str, Domain] = {
    "theme": Categorical(["light", "dark"]),
    "level": Ordinal(10),
    "seconds": Numeric(0.0, 20.0, cells=8),
    "word": Strings(longest=16),
    "plugins": Sets(Categorical(["a", "b", "c", "d"]), most=3),
}
QUESTIONS: dict[str, Question] = {
    "themes": Question.make(kind="histogram", field="theme", epsilon=1.0, title="Light or dark?"),
    "levels": Question.make(kind="histogram", field="level", epsilon=1.0, mechanism="OLH"),
    "times": Question.make(kind="histogram", field="seconds", epsilon=1.0),
    "time": Question.make(kind="mean", field="seconds", epsilon=1.0),
    "times_now": Question.make(kind="stream", field="seconds", epsilon=1.0, method="LPU", w=4, of="cells"),
    "time_now": Question.make(kind="stream", field="seconds", epsilon=1.0, method="LBA", w=4),
    "theme_now": Question.make(kind="stream", field="theme", epsilon=1.0, method="LPA", w=4),
    "words": Question.make(kind="histogram", field="word", epsilon=4.0, candidates=("yes", "no")),
    "how_many": Question.make(kind="histogram", field="plugins", epsilon=1.0, of="size"),
    "kept": Question.make(kind="memo", field="theme", epsilon=1.0, permanent=2.0),
    "kept_level": Question.make(kind="memo", field="level", epsilon=1.0, permanent=2.0, mechanism="Loloha"),
    "kept_time": Question.make(kind="memo", field="seconds", epsilon=1.0, permanent=2.0),
}
VALUES: dict[str, Any] = {"theme": "dark", "level": 3, "seconds": 7.5, "word": "yes", "plugins": {"b", "a"}}


def each(table: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    """The pairs of a table: each key with each of its values."""
    return [(key, value) for key, values in table.items() for value in values]


def make(**options: Any) -> Collection:
    """A collection with every kind of field and question, or what is given instead."""
    defaults: dict[str, Any] = {
        "name": "everything",
        "title": "Every kind of question",
        "fields": FIELDS,
        "questions": QUESTIONS,
        "budget": Budget.of(event=20.0, window=(100.0, 7), user=1000.0),
        "step_seconds": 3600,
        **options,
    }
    return Collection(**defaults)


@pytest.fixture
def everything() -> Collection:
    return make()
