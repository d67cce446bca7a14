"""Collections: the same on every machine; what they refuse, and how devices and questions use them."""

import copy
import json
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.collection import SignedCollection
from hubbub.core.domain import NONE, Categorical, Ordinal
from hubbub.core.errors import InvalidValue
from hubbub.core.spec import canonical
from hubbub.ledger.promise import Budget
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.memoised import Memoised
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation
from hubbub.questions import Question, read_collection
from hubbub.questions.collection import Collection
from hubbub.questions.stream import StreamQuestion
from tests.collection.conftest import FIELDS, QUESTIONS, VALUES, each, make
from tests.shared.small_collections import first_ask


def test_every_field_and_question_survives_json(everything: Collection) -> None:
    text = canonical(everything.spec())
    back = read_collection(json.loads(text))
    assert back == everything
    device = SignedCollection.from_spec(json.loads(text))
    assert (device.terms, device.promises, device.frame_bytes) == (back.terms, back.promises, back.frame_bytes)
    assert canonical(device.spec()) == text
    assert back.collection_id == everything.collection_id
    assert canonical(back.spec()) == text
    assert list(back.questions) == sorted(QUESTIONS)


def test_a_large_limit_survives_json() -> None:
    collection = make(budget=Budget.of(user=100_000.0))  # 10^17 units: a string in JSON
    assert read_collection(json.loads(canonical(collection.spec()))) == collection


def test_the_order_of_a_file_does_not_matter() -> None:
    backward = make(questions=dict(reversed(QUESTIONS.items())), fields=dict(reversed(FIELDS.items())))
    assert backward.collection_id == make().collection_id
    assert list(backward.questions) == list(make().questions)


def test_it_can_be_sent_to_another_process(everything: Collection) -> None:
    assert pickle.loads(pickle.dumps(everything)) == everything
    assert copy.deepcopy(everything) == everything
    assert len({everything, make()}) == 1


def test_it_cannot_be_changed(everything: Collection) -> None:
    with pytest.raises(FrozenInstanceError):
        everything.version = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        everything.questions["more"] = QUESTIONS["themes"]  # type: ignore[index]


REFUSED: dict[str, list[Any]] = {
    "name": ["Every Thing", ""],
    "title": ["  ", "two\nlines"],
    "version": [0, True],
    "trust": ["us"],
    "step_seconds": [0, 1.5],
    "origin": [-1],
    "lateness_seconds": [-1],
    "minimum_batch": [0],
    "minimum_arc": [0, (1 << 32) + 1],
    "retention_days": [0],
    "budget": [1.0],
    "fields": [[], {"Theme": Ordinal(3)}],
    "questions": [{}],
}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        *(({key: value}, key) for key, value in each(REFUSED)),
        ({"trust": "shuffle"}, "shuffle"),
        ({"fields": {"theme": Categorical(["a", NONE])}}, "fields.theme.names"),
        ({"fields": {"theme": Ordinal(1 << 32)}}, "fields.theme.size"),
        ({"fields": {"theme": 3}}, "fields.theme"),
        ({"questions": {"q": 3}}, "questions.q"),
        ({"questions": {"q": QUESTIONS["themes"].spec(), "r": QUESTIONS["themes"]}}, "questions.q"),
        ({"questions": {"q": Question.make(kind="histogram", field="gone", epsilon=1.0)}}, "questions.q.field"),
        ({"questions": {"q": Question.make(kind="mean", field="theme", epsilon=1.0)}}, "questions.q.field"),
        ({"overrides": {"everything": "because"}}, "overrides.everything"),
        ({"overrides": {"epsilon_above_8": ""}}, "overrides.epsilon_above_8"),
    ],
)
def test_what_is_refused(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        make(**change)
    assert refused.value.field == field


QUESTIONS_REFUSED: dict[str, list[Any]] = {
    "kind": ["median", ["stream"]],
    "epsilon": [0.0, float("nan"), True, 5000.0],
    "method": ["LPU"],
    "w": [5],
    "permanent": [2.0],
    "field": [["theme"]],
    "title": ["two\nlines", "x" * 201],
    "mechanism": [["OUE"], "Hybrid", "BasicRappor", "Nothing"],
    "of": [["size"], "size"],
    "candidates": [["a"], "a"],
}


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        *(({key: value}, key) for key, value in each(QUESTIONS_REFUSED)),
        ({"kind": "stream"}, "method"),
        ({"kind": "stream", "method": "LPU"}, "w"),
        ({"kind": "stream", "method": "LXX", "w": 5}, "method"),
        ({"kind": "stream", "method": ["LPU"], "w": 5}, "method"),
        ({"kind": "stream", "method": "LPU", "w": 0}, "w"),
        ({"kind": "stream", "method": "LPU", "w": 2.0}, "w"),
        ({"kind": "memo"}, "permanent"),
        ({"kind": "memo", "permanent": 1.0}, "permanent"),
        ({"kind": "memo", "permanent": 2.0, "mechanism": "OUE"}, "mechanism"),
        ({"field": "seconds", "of": "size"}, "of"),
        ({"field": "seconds", "kind": "mean", "of": "cells"}, "of"),
        ({"field": "seconds", "kind": "mean", "mechanism": "OUE"}, "mechanism"),
        ({"field": "plugins", "of": "cells"}, "of"),
        ({"field": "word"}, "candidates"),
        ({"field": "word", "candidates": ["a", "a"]}, "candidates"),
        ({"field": "word", "candidates": ["a" * 17]}, "candidates"),
        ({"field": "word", "candidates": [3]}, "candidates"),
        ({"field": "word", "candidates": ["a"], "kind": "memo", "permanent": 2.0, "mechanism": "Loloha"}, "mechanism"),
        ({"field": "word", "kind": "memo", "permanent": 2.0}, "candidates"),
        ({"field": "word", "candidates": ["a"], "mechanism": "OUE"}, "mechanism"),
    ],
)
def test_questions_that_are_refused(keys: dict[str, Any], field: str) -> None:
    spec = {"kind": "histogram", "field": "theme", "epsilon": 1.0, **keys}
    with pytest.raises(InvalidValue) as refused:
        make(questions={"q": Question.make(**spec)})
    assert refused.value.field.removeprefix("questions.q.") == field


@pytest.mark.parametrize("spec", [None, [], {}, {"kind": "histogram"}, {**QUESTIONS["themes"].spec(), "more": 1}])
def test_a_question_from_json_has_its_keys_and_no_other(spec: Any) -> None:
    with pytest.raises(InvalidValue):
        Question.from_spec(spec)


@pytest.mark.parametrize("key", ["format", "fields", "questions", "budget", "version", "minimum_arc"])
@pytest.mark.parametrize("value", [None, "x", 1.5, [], {"a": 1}])
def test_a_hostile_spec_is_refused(everything: Collection, key: str, value: Any) -> None:
    for read in (SignedCollection.from_spec, read_collection):
        with pytest.raises(InvalidValue):
            read({**everything.spec(), key: value})


def test_a_spec_with_more_or_less_is_refused(everything: Collection) -> None:
    spec = everything.spec()
    for other in ({**spec, "more": 1}, {key: value for key, value in spec.items() if key != "origin"}):
        with pytest.raises(InvalidValue):
            SignedCollection.from_spec(other)


def test_time() -> None:
    collection = make(origin=1000, step_seconds=60)
    assert [collection.step_at(now) for now in (999.9, 1000.0, 1059.9, 1060.0)] == [-1, 0, 0, 1]
    assert collection.opens(3) == 1180
    assert collection.closes(3) == 1240
    assert collection.closes(3, question="themes", phase=1) == 1240
    assert collection.closes(3, question="theme_now", phase=1) == 1210
    assert collection.closes(3, question="theme_now", phase=2) == 1240


# -- from a recorded value to a report ---------------------------------------------------------------------------------


NO_VALUES: dict[str, list[Any]] = {
    "theme": ["blue", NONE, 1],
    "level": [10, -1, True, 1.5],
    "seconds": ["fast", float("nan"), True],
    "word": ["a" * 17, 3],
    "plugins": [{"a", "x"}, {"a", "b", "c", "d"}],
    "nothing": [1],
}


@pytest.mark.parametrize(("field", "value"), each(NO_VALUES))
def test_a_value_that_a_field_does_not_have_is_refused(everything: Collection, field: str, value: Any) -> None:
    with pytest.raises(InvalidValue):
        everything.encode(field, value)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_answers_what_was_recorded_and_what_was_not(everything: Collection, name: str) -> None:
    """Also the bytes that any code makes are of one size, which fits the frame."""
    ask, mechanism = first_ask(everything, name)
    assert Ask.from_spec(json.loads(canonical(ask.spec()))) == ask
    (field,) = everything.questions[name].reads()
    codes = [everything.encode(field, VALUES[field]), everything.missing(field)]
    if field == "seconds":
        codes += [1e9, -1e9]
    sizes = {len(mechanism.randomize(ask.view([code]), hb.Random(seed=1)).to_bytes()) for code in codes}
    assert len(sizes) == 1
    assert max(sizes) + 200 < everything.frame_bytes


def test_no_two_questions_make_the_same_ask() -> None:
    alike = dict.fromkeys(("one", "two", "three"), QUESTIONS["themes"])
    collection = make(questions=alike)
    assert len({first_ask(collection, name)[0].ask_id for name in alike}) == 3


@pytest.mark.parametrize("name", ["times_now", "theme_now"])
def test_turning_the_circle_asks_nobody_twice_in_a_window(everything: Collection, name: str) -> None:
    """Over 40 steps, 1,000 devices: the asks of any w steps hold each place once at most."""
    question = everything.questions[name]
    assert isinstance(question, StreamQuestion)
    places = np.linspace(0, (1 << 32) - 1, 1000).astype(np.int64)
    times_asked = np.zeros((41, places.size), dtype=np.int64)
    talk = Conversation(everything.protocol(name))
    step = 1
    while step <= 40:
        message = talk.listen()
        if isinstance(message, Ask):
            times_asked[message.step] += message.cohort.holds(places)
            half = [0.0, 9.0] * 500 if "time" in name else [0, 1] * 500
            assert isinstance(message.mechanism, Mechanism)
            reports = message.mechanism.randomize(message.view(half), hb.Random(seed=step))
            talk.reply(message.ask_id, message.mechanism.accumulate(reports))
        else:
            step += 1
    windows = np.lib.stride_tricks.sliding_window_view(times_asked, question.w, axis=0).sum(axis=-1)
    assert windows.max() == 1


@pytest.mark.parametrize("name", ["kept", "kept_level", "kept_time"])
def test_a_memo_spends_what_it_says(everything: Collection, name: str) -> None:
    _, mechanism = first_ask(everything, name)
    assert isinstance(mechanism, Memoised)
    assert 0.999 < mechanism.effective_epsilon <= 1.0
    assert 1.999 < mechanism.permanent_epsilon <= 2.0
