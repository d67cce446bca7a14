"""Releases in a collection: every ask is one that devices admit, and what they cost is what is promised."""

from __future__ import annotations

from typing import Any

import pytest
from tests.questions.settings import setting

from hubbub import Categorical, Numeric, Random
from hubbub.alarms.plan import AlarmPlan
from hubbub.authoring import forecast, load_collection, promise
from hubbub.collection.admits import admits, admits_parts
from hubbub.core.errors import InvalidValue
from hubbub.protocols.ask import Release
from hubbub.protocols.driver import Conversation
from hubbub.questions import Question

TEXT = """
name = "survey"
version = 1
title = "Taxi rides"

[schedule]
step = "1h"
lateness = "10m"

[privacy]
event = 1.0

[fields.fare]
kind = "numeric"
low = 0.0
high = 500.0
cells = 50

[questions.fares]
kind = "release"
field = "fare"
epsilon = 1.0
r = 24
every = 2
"""


def test_devices_admit_all_that_is_asked() -> None:
    collection = load_collection(TEXT)
    terms = collection.terms["fares"]
    talk = Conversation(collection.protocol("fares"), rounds=terms.rounds, parts=terms.parts)
    released, asked = 0, set()
    while released < 5:
        if isinstance(talk.listen(), Release):
            released += 1
            continue
        assert admits_parts(terms, talk.asks, minimum_arc=collection.minimum_arc) is None
        for part, ask in enumerate(talk.asks):
            assert admits(terms, ask, part=part, minimum_arc=collection.minimum_arc) is None
            asked.add(ask.view.high)  # type: ignore[attr-defined]
        answers = []
        for ask in talk.asks:
            mechanism: Any = ask.mechanism
            fares = ask.view([5.0, 8.0, 12.0, 60.0] * 2_000)
            answers.append(mechanism.accumulate(mechanism.randomize(fares, Random(seed=ask.step))))
        talk.reply_all(answers)
    assert len(asked) > 1
    assert min(asked) < 200


def test_it_is_planned_and_promised() -> None:
    collection = load_collection(TEXT)
    assert [(row.kind, row.mechanism) for row in forecast(collection)] == [("release, 24 steps", "Hybrid")]
    assert "Of fare: what are its mean and its sum? One report every hour." in promise(collection)


@pytest.mark.parametrize(
    ("keys", "domain", "named"),
    [
        ({"r": 4}, Categorical(["a", "b"]), "field"),
        ({"r": 4}, Numeric(-1.0, 1.0, cells=4), "field"),
        ({"r": 4, "mechanism": "Hybrid"}, Numeric(0.0, 1.0, cells=4), "mechanism"),
    ],
)
def test_what_cannot_be_asked_is_refused(keys: dict[str, Any], domain: Any, named: str) -> None:
    question = Question.make("release", field="fare", epsilon=1.0, **keys)
    with pytest.raises(InvalidValue) as refused:
        question.check(setting(question, domain))
    assert refused.value.field == named


@pytest.mark.parametrize("keys", [{"r": 0}, {"r": 4, "every": -1}])
def test_lengths_are_checked(keys: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Question.make("release", field="fare", epsilon=1.0, **keys)


def test_an_alarm_about_it_is_refused() -> None:
    """Clipped means are not unbiased: the collector would judge none of its steps, and the alarm never be raised."""
    plan = AlarmPlan.from_spec({"dear": {"question": "fares", "above": 20.0}})
    with pytest.raises(InvalidValue, match=r"alarms\.dear\.question.*unbiased"):
        plan.watches(load_collection(TEXT))
