"""Collections: the same on every machine; what they refuse, and how devices and questions use them."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.collection import Collection
from hubbub.core.domain import NONE, Categorical, Domain, Ordinal
from hubbub.core.errors import InvalidValue
from hubbub.core.spec import canonical
from hubbub.ledger.promise import Budget
from hubbub.mechanisms.memoised import Memoised
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation, Release
from hubbub.protocols.views.basic import View
from hubbub.questions import Question, read_collection
from tests.collection.conftest import FIELDS, QUESTIONS, VALUES, make


def test_every_field_and_question_survives_json(everything: Collection) -> None:
    text = canonical(everything.spec())
    back = read_collection(json.loads(text))
    assert back == everything
    device = Collection.from_spec(json.loads(text))
    assert (device.terms, device.promises, device.frame_bytes) == (back.terms, back.promises, back.frame_bytes)
    assert not device.knows_kinds
    assert canonical(device.spec()) == text
    assert back.collection_id == everything.collection_id
    assert canonical(back.spec()) == text
    assert list(back.questions) == sorted(QUESTIONS)


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_survives_by_itself(name: str) -> None:
    domain = FIELDS[name]
    assert Domain.from_spec(json.loads(canonical(domain.spec()))) == domain


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_survives_by_itself(name: str) -> None:
    question = QUESTIONS[name]
    assert Question.from_spec(json.loads(canonical(question.spec()))) == question


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


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "Every Thing"}, "name"),
        ({"name": ""}, "name"),
        ({"title": "  "}, "title"),
        ({"title": "two\nlines"}, "title"),
        ({"version": 0}, "version"),
        ({"version": True}, "version"),
        ({"trust": "shuffle"}, "shuffle"),
        ({"trust": "us"}, "trust"),
        ({"step_seconds": 0}, "step_seconds"),
        ({"step_seconds": 1.5}, "step_seconds"),
        ({"origin": -1}, "origin"),
        ({"lateness_seconds": -1}, "lateness_seconds"),
        ({"minimum_batch": 0}, "minimum_batch"),
        ({"minimum_arc": 0}, "minimum_arc"),
        ({"minimum_arc": (1 << 32) + 1}, "minimum_arc"),
        ({"retention_days": 0}, "retention_days"),
        ({"budget": 1.0}, "budget"),
        ({"fields": []}, "fields"),
        ({"fields": {"Theme": Ordinal(3)}}, "fields"),
        ({"fields": {"theme": Categorical(["a", NONE])}}, "fields.theme.names"),
        ({"fields": {"theme": Ordinal(1 << 32)}}, "fields.theme.size"),
        ({"fields": {"theme": 3}}, "fields.theme"),
        ({"questions": {}}, "questions"),
        ({"questions": {"q": 3}}, "questions.q"),
        ({"questions": {"q": QUESTIONS["themes"].spec(), "r": QUESTIONS["themes"]}}, "questions.r"),
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


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"kind": "median"}, "kind"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"epsilon": 5000.0}, "epsilon"),
        ({"method": "LPU"}, "method"),
        ({"w": 5}, "w"),
        ({"permanent": 2.0}, "permanent"),
        ({"kind": "stream"}, "method"),
        ({"kind": "stream", "method": "LPU"}, "w"),
        ({"kind": "stream", "method": "LXX", "w": 5}, "method"),
        ({"kind": "stream", "method": ["LPU"], "w": 5}, "method"),
        ({"kind": ["stream"]}, "kind"),
        ({"field": ["theme"]}, "field"),
        ({"title": "two\nlines"}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"mechanism": ["OUE"]}, "mechanism"),
        ({"of": ["size"]}, "of"),
        ({"kind": "stream", "method": "LPU", "w": 0}, "w"),
        ({"kind": "stream", "method": "LPU", "w": 2.0}, "w"),
        ({"kind": "memo"}, "permanent"),
        ({"kind": "memo", "permanent": 1.0}, "permanent"),
        ({"kind": "memo", "permanent": 2.0, "mechanism": "OUE"}, "mechanism"),
        ({"mechanism": "Hybrid"}, "mechanism"),
        ({"mechanism": "BasicRappor"}, "mechanism"),
        ({"mechanism": "Nothing"}, "mechanism"),
        ({"of": "size"}, "of"),
        ({"candidates": ["a"]}, "candidates"),
        ({"candidates": "a"}, "candidates"),
        ({"field": "seconds", "of": "size"}, "of"),
        ({"field": "seconds", "kind": "mean", "of": "cells"}, "of"),
        ({"field": "seconds", "kind": "mean", "mechanism": "OUE"}, "mechanism"),
        ({"field": "plugins", "of": "cells"}, "of"),
        ({"field": "word"}, "candidates"),
        ({"field": "word", "candidates": ["a", "a"]}, "candidates"),
        ({"field": "word", "candidates": ["a" * 17]}, "candidates"),
        ({"field": "word", "candidates": [3]}, "candidates"),
        ({"field": "word", "candidates": ["a"], "kind": "memo", "permanent": 2.0}, "candidates"),
        ({"field": "word", "kind": "memo", "permanent": 2.0}, "kind"),
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
    with pytest.raises(InvalidValue):
        Collection.from_spec({**everything.spec(), key: value})
    with pytest.raises(InvalidValue):
        read_collection({**everything.spec(), key: value})


def test_a_spec_with_more_or_less_is_refused(everything: Collection) -> None:
    spec = everything.spec()
    with pytest.raises(InvalidValue):
        Collection.from_spec({**spec, "more": 1})
    with pytest.raises(InvalidValue):
        Collection.from_spec({key: value for key, value in spec.items() if key != "origin"})


def test_time() -> None:
    collection = make(origin=1000, step_seconds=60)
    assert [collection.step_at(now) for now in (999.9, 1000.0, 1059.9, 1060.0)] == [-1, 0, 0, 1]
    assert collection.opens(3) == 1180
    assert collection.closes(3) == 1240
    assert collection.closes(3, question="themes", phase=1) == 1240
    assert collection.closes(3, question="theme_now", phase=1) == 1210
    assert collection.closes(3, question="theme_now", phase=2) == 1240


# -- from a recorded value to a release --------------------------------------------------------------------------------


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_has_a_code_for_a_value_and_for_none(everything: Collection, field: str) -> None:
    domain = FIELDS[field]
    assert everything.encode(field, VALUES[field]) == domain.code(VALUES[field])
    assert everything.missing(field) == domain.missing()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("theme", "blue"),
        ("theme", NONE),
        ("theme", 1),
        ("level", 10),
        ("level", -1),
        ("level", True),
        ("level", 1.5),
        ("seconds", "fast"),
        ("seconds", float("nan")),
        ("seconds", True),
        ("word", "a" * 17),
        ("word", 3),
        ("plugins", {"a", "x"}),
        ("plugins", {"a", "b", "c", "d"}),
        ("nothing", 1),
    ],
)
def test_a_value_that_a_field_does_not_have_is_refused(everything: Collection, field: str, value: Any) -> None:
    with pytest.raises(InvalidValue):
        everything.encode(field, value)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_answers_what_was_recorded_and_what_was_not(everything: Collection, name: str) -> None:
    """Also the bytes that any code makes are of one size, which fits the frame."""
    question = everything.questions[name]
    ask = next(everything.protocol(name))
    assert isinstance(ask, Ask)
    ask = Ask.from_spec(json.loads(canonical(ask.spec())))
    codes = [everything.encode(question.field, VALUES[question.field]), everything.missing(question.field)]
    if question.field == "seconds":
        codes += [1e9, -1e9]
    sizes = {len(ask.mechanism.randomize(ask.view([code]), hb.Random(seed=1)).to_bytes()) for code in codes}
    assert len(sizes) == 1
    assert max(sizes) + 200 < everything.frame_bytes


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_releases_named_numbers(everything: Collection, name: str) -> None:
    """2,000 devices that hold one value at a large epsilon: it is estimated within 6 standard errors (chance 1e-8)."""
    question = everything.questions[name]
    larger = {"epsilon": 6.0, **({"permanent": 8.0} if question.kind == "memo" else {})}
    collection = make(questions={name: replace(question, **larger)})
    value = VALUES[question.field]
    code = collection.encode(question.field, value)
    talk = Conversation(collection.protocol(name))
    while isinstance(ask := talk.listen(), Ask):
        batch = [code] * 2000
        rng = hb.Random(seed=ask.step)
        talk.reply(ask.ask_id, ask.mechanism.accumulate(ask.mechanism.randomize(ask.view(batch), rng)))
    assert isinstance(ask, Release)
    labels = collection.labels(name)
    assert labels is not None
    assert ask.estimate.labels == labels
    expected = {"theme": "dark", "level": "3", "seconds": "7.5 to 10", "word": "yes", "plugins": "2"}[question.field]
    if labels == ("seconds",):
        truth, place = 7.5, 0
    else:
        truth, place = 1.0, labels.index(expected)
    off = abs(float(ask.estimate.value[place]) - truth)
    assert off < 6 * float(ask.estimate.stderr[place]) + 0.02  # words are decoded with a bias
    assert float(ask.estimate.stderr[place]) < 0.2 * truth


def test_no_two_questions_make_the_same_ask() -> None:
    alike = dict.fromkeys(("one", "two", "three"), QUESTIONS["themes"])
    collection = make(questions=alike)
    asks = [next(collection.protocol(name)) for name in alike]
    assert len({ask.ask_id for ask in asks if isinstance(ask, Ask)}) == 3


@pytest.mark.parametrize("name", ["times_now", "theme_now"])
def test_turning_the_circle_asks_nobody_twice_in_a_window(everything: Collection, name: str) -> None:
    """Over 40 steps, 1,000 devices: the asks of any w steps hold each place once at most."""
    w = everything.questions[name].w
    places = np.linspace(0, (1 << 32) - 1, 1000).astype(np.int64)
    times_asked = np.zeros((41, places.size), dtype=np.int64)
    talk = Conversation(everything.protocol(name))
    step = 1
    while step <= 40:
        message = talk.listen()
        if isinstance(message, Ask):
            times_asked[message.step] += message.cohort.holds(places)
            half = [0.0, 9.0] * 500 if "time" in name else [0, 1] * 500
            reports = message.mechanism.randomize(message.view(half), hb.Random(seed=step))
            talk.reply(message.ask_id, message.mechanism.accumulate(reports))
        else:
            step += 1
    assert w is not None
    windows = np.lib.stride_tricks.sliding_window_view(times_asked, w, axis=0).sum(axis=-1)
    assert windows.max() == 1


def test_a_memo_spends_what_it_says() -> None:
    for name in ("kept", "kept_level", "kept_time"):
        mechanism = make().questions[name].mechanism_for(make().setting(name))
        assert isinstance(mechanism, Memoised)
        assert 0.999 < mechanism.effective_epsilon <= 1.0
        assert 1.999 < mechanism.permanent_epsilon <= 2.0


def test_views_of_asks_are_known_by_name(everything: Collection) -> None:
    for name in everything.questions:
        ask = next(everything.protocol(name))
        assert isinstance(ask, Ask)
        assert View.from_spec(json.loads(canonical(ask.view.spec()))) == ask.view
