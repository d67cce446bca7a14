"""A collection that asks for the most common words."""

from typing import Any

from hubbub import Strings
from hubbub.core.domain import Domain
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.questions.collection import Collection

START = 1_800_000_000


def top_collection(*, fields: dict[str, Domain] | None = None, **keys: Any) -> Collection:
    question_keys = {"field": "word", "epsilon": 2.0, "start": "2027-01-15T08:00Z", "round": "1h", "k": 3} | keys
    return Collection(
        name="words",
        title="For tests",
        fields=fields or {"word": Strings(longest=4)},
        questions={"words": Question.make("top", **{"query_limit": 1 << 13, **question_keys})},
        budget=Budget.of(event=9.0),
        step_seconds=3600,
        lateness_seconds=10,
        minimum_batch=20,
        retention_days=1,
    )
