"""Collections that tests share."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub.collection import Collection, QuestionSpec
from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings
from hubbub.privacy.budget import Budget

FIELDS: dict[str, Domain] = {
    "theme": Categorical(["light", "dark"]),
    "level": Ordinal(10),
    "seconds": Numeric(0.0, 20.0, cells=8),
    "word": Strings(longest=16),
    "plugins": Sets(Categorical(["a", "b", "c", "d"]), most=3),
}
QUESTIONS: dict[str, QuestionSpec] = {
    "themes": QuestionSpec(kind="histogram", field="theme", epsilon=1.0, title="Light or dark?"),
    "levels": QuestionSpec(kind="histogram", field="level", epsilon=1.0, mechanism="OLH"),
    "times": QuestionSpec(kind="histogram", field="seconds", epsilon=1.0),
    "time": QuestionSpec(kind="mean", field="seconds", epsilon=1.0),
    "times_now": QuestionSpec(kind="stream", field="seconds", epsilon=1.0, method="LPU", w=4, of="cells"),
    "time_now": QuestionSpec(kind="stream", field="seconds", epsilon=1.0, method="LBA", w=4),
    "theme_now": QuestionSpec(kind="stream", field="theme", epsilon=1.0, method="LPA", w=4),
    "words": QuestionSpec(kind="histogram", field="word", epsilon=4.0, candidates=("yes", "no")),
    "how_many": QuestionSpec(kind="histogram", field="plugins", epsilon=1.0, of="size"),
    "kept": QuestionSpec(kind="memo", field="theme", epsilon=1.0, permanent=2.0),
    "kept_level": QuestionSpec(kind="memo", field="level", epsilon=1.0, permanent=2.0, mechanism="Loloha"),
    "kept_time": QuestionSpec(kind="memo", field="seconds", epsilon=1.0, permanent=2.0),
}
VALUES: dict[str, Any] = {"theme": "dark", "level": 3, "seconds": 7.5, "word": "yes", "plugins": {"b", "a"}}


def make(**given: Any) -> Collection:
    """A collection with every kind of field and question, or what is given instead."""
    whole: dict[str, Any] = {
        "name": "everything",
        "title": "Every kind of question",
        "fields": FIELDS,
        "questions": QUESTIONS,
        "budget": Budget.of(event=20.0, window=(100.0, 7), user=1000.0),
        "step_seconds": 3600,
        **given,
    }
    return Collection(**whole)


@pytest.fixture
def everything() -> Collection:
    return make()
