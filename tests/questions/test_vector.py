"""Questions of kind vector: who is asked in which round, what it costs, and what is refused."""

from typing import Any

import pytest

from hubbub.core.domain import Ordinal
from hubbub.core.domain.vector import Vector
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.protocols.ask import CIRCLE, Ask, disjoint
from hubbub.protocols.driver import Conversation
from hubbub.questions import Question
from tests.questions.settings import placed

KEYS = {"field": "step", "epsilon": 8.0, "start": "2026-12-01T00:00Z", "sparsity": 2, "clip": 0.5}


def ask(**keys: Any) -> Question:
    return Question.make("vector", **{**KEYS, **keys})


def asks_of(question: Question, run: int = 0) -> list[Ask]:
    conversation, asks = Conversation(placed(question, Vector(8)).protocol(first=run)), []
    while conversation.message is not None:
        if conversation.asks:
            (current,) = conversation.asks
            asks.append(current)
            conversation.reply(current.ask_id, current.mechanism.empty())
        conversation.listen()
    return asks


def test_a_device_answers_one_round_of_a_run() -> None:
    asks = asks_of(ask(rounds=10))
    assert len(asks) == 10
    assert disjoint(each.cohort for each in asks)
    assert sum(each.cohort.length for each in asks) > CIRCLE - 10
    assert all(each.event().spent <= units_of(8.0) for each in asks)


def test_several_rounds_share_epsilon() -> None:
    asks = asks_of(ask(rounds=10, most_rounds=2))
    assert [each.cohort for each in asks[:5]] == [each.cohort for each in asks[5:]]
    assert disjoint(each.cohort for each in asks[:5])
    assert {each.mechanism.epsilon for each in asks} == {4.0}


def test_turns_are_parts_of_the_people() -> None:
    question = ask(rounds=4, every="30d", turns=3)
    runs = [asks_of(question, run) for run in range(4)]
    assert disjoint(each.cohort for asks in runs[:3] for each in asks)
    assert [each.cohort for each in runs[3]] == [each.cohort for each in runs[0]]
    assert placed(question, Vector(8)).answering() == pytest.approx(1 / 12)


def test_the_ask_of_a_round_names_its_model() -> None:
    (signed,) = placed(ask(), Vector(8)).terms().views
    assert signed == {"kind": "update", "model": {"hex": 64}, "dimension": 8, "sparsity": 2, "clip": 0.5}


@pytest.mark.parametrize("name", ["NetSub", "NetSeed", "ExSub", "CoCo", "Collision"])
def test_a_mechanism_may_be_named(name: str) -> None:
    question = placed(ask(mechanism=name), Vector(8))
    assert question.made_by() == name


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"rounds": 0}, "rounds"),
        ({"rounds": 4, "most_rounds": 3}, "most_rounds"),
        ({"most_rounds": 21}, "most_rounds"),
        ({"clip": 0.0}, "clip"),
        ({"step_size": -1.0}, "step_size"),
        ({"momentum": 1.0}, "momentum"),
        ({"sparsity": 9}, "sparsity"),
        ({"mechanism": "GRR"}, "mechanism"),
    ],
)
def test_bad_keys_are_refused_by_name(keys: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        placed(ask(**keys), Vector(8)).check()
    assert refused.value.field == field


def test_other_fields_are_refused() -> None:
    with pytest.raises(InvalidValue, match="field of kind vector"):
        placed(ask(), Ordinal(8)).check()


def test_the_promise_and_the_forecast() -> None:
    question = placed(ask(rounds=10), Vector(8))
    assert question.sentence().startswith("One report, once, about how a public model should change")
    assert question.forecast(5) is None
    assert question.forecast(40_000) == pytest.approx((question.forecast(10_000) or 0) / 2)
