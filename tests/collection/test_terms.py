"""Terms and promises: compiled from the questions, signed with them, and refused if they differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hubbub.authoring import check
from hubbub.collection import Collection
from hubbub.collection.spending import cost_of
from hubbub.core.domain import Ordinal
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation
from hubbub.questions import Question, read_collection
from tests.collection.conftest import QUESTIONS, make

ONE = UNITS_PER_EPSILON
MEMO = Question.make(kind="memo", field="home", epsilon=1.0, permanent=2.0)
SHARES = Question.make(kind="histogram", field="home", epsilon=0.5, mechanism="GRR")


def survey(budget: Budget, **questions: Question) -> Collection:
    return make(fields={"home": Ordinal(6), "work": Ordinal(6)}, questions=questions, budget=budget)


def parts(collection: Collection) -> list[dict[str, float]]:
    """Of each limit, what each question's account gets, in epsilon."""
    accounts = {terms.account: name for name, terms in collection.terms.items()}
    return [
        {accounts[account]: round(units / ONE, 6) for account, units in promise.parts.items()}
        for promise in collection.promises
    ]


@pytest.mark.parametrize(
    ("user", "questions", "wanted"),
    [
        (7.0, {"page": MEMO}, {"page": 7.0}),
        (12.0, {"page": MEMO, "popular": SHARES}, {"page": 6.0, "popular": 6.0}),
        (2.5, {"page": MEMO, "popular": SHARES}, {"page": 2.0, "popular": 0.5}),
        (9.0, {"page": MEMO, "desk": replace(MEMO, field="work")}, {"page": 4.5, "desk": 4.5}),
        (9.0, {"page": MEMO, "desk": replace(MEMO, field="work", permanent=6.0)}, {"page": 3.0, "desk": 6.0}),
        (5.0, {"page": MEMO, "desk": replace(MEMO, field="work", permanent=6.0)}, {"page": 2.5, "desk": 2.5}),
        (9.0, {"page": MEMO, "again": MEMO}, {"page": 9.0}),  # one account, one set of memos
    ],
)
def test_a_life_is_divided_beforehand(user: float, questions: dict[str, Question], wanted: dict[str, float]) -> None:
    collection = survey(Budget.of(user=user), **questions)
    assert parts(collection) == [pytest.approx(wanted, abs=1e-5)]


def test_steps_and_windows_are_divided_too() -> None:
    collection = survey(Budget.of(event=3.0, window=(9.0, 8), user=12.0), page=MEMO, popular=SHARES)
    assert parts(collection) == [
        {"page": 2.5, "popular": 0.5},
        {"page": 5.0, "popular": 4.0},  # eight histograms
        {"page": 6.0, "popular": 6.0},
    ]
    assert [(promise.limit, promise.steps, promise.interval) for promise in collection.promises] == [
        (3 * ONE, 1, 3600),
        (9 * ONE, 8, 3600),
        (12 * ONE, 0, 0),
    ]


def test_every_kind_says_what_it_may_cost() -> None:
    moves = Question.make(kind="changes", field="theme", epsilon=1.0, steps=24, changes=2)
    collection = make(questions={**QUESTIONS, "moves": moves})
    for name, terms in collection.terms.items():
        question, cost = collection.questions[name], cost_of(collection, name)
        (promise,) = terms.promises
        assert promise.scope == f"question:{name}"
        assert promise.limit >= cost.each
        if question.kind == "memo":
            assert (promise.limit, promise.steps) == (cost.most, 0)
        elif question.kind == "stream":
            assert (promise.limit, promise.steps) == (round(question.epsilon * ONE), question.w)
        else:
            assert (promise.limit, promise.steps) == (round(question.epsilon * ONE), 1)
        if question.kind == "changes":
            assert promise.interval == (question.steps or 0) * collection.step_seconds
        assert terms.frozen == ("last" if question.kind in ("memo", "changes") else "step")
        ask = Conversation(collection.protocol(name)).message
        assert isinstance(ask, Ask)
        assert ask.mechanism.spec_id in terms.mechanisms
        assert ask.view.spec() in terms.views
        assert terms.limit == cost.each
        assert terms.fields == question.reads()
        assert terms.report_bytes >= ask.mechanism.report_bytes


def test_other_terms_than_the_questions_compile_to_are_refused() -> None:
    collection = survey(Budget.of(user=12.0), page=MEMO, popular=SHARES)
    spec: dict[str, Any] = collection.spec()
    assert read_collection(spec) == collection
    popular = spec["terms"]["popular"]
    forged: list[dict[str, Any]] = [
        {"promises": []},
        {"promises": [{**spec["promises"][0], "limit": 13 * ONE}]},
        {"promises": [{**spec["promises"][0], "parts": {"asks": 12 * ONE}}]},
        {"terms": {}},
        {"frame_bytes": 2048},
        {"terms": {**spec["terms"], "popular": {**popular, "rounds": 2}}},
        {"terms": {**spec["terms"], "popular": {**popular, "mechanisms": ["0" * 32]}}},
        {"terms": {**spec["terms"], "popular": {**popular, "promises": []}}},
    ]
    for change in forged:
        with pytest.raises(InvalidValue, match="compile to"):
            read_collection({**spec, **change})
    for name in ("terms", "promises", "frame_bytes"):
        with pytest.raises(InvalidValue, match="exactly the fields"):
            Collection.from_spec({key: value for key, value in spec.items() if key != name})


def test_a_question_that_could_never_be_answered_is_an_error() -> None:
    costly = replace(SHARES, epsilon=5.0)
    memos = {
        name: replace(MEMO, field=field, epsilon=0.05, permanent=0.1) for name, field in (("a", "home"), ("b", "work"))
    }
    findings = check(survey(Budget.of(user=5.5), popular=costly, **memos))
    assert [
        finding.where for finding in findings if finding.level == "error" and "never answer it" in finding.text
    ] == ["privacy.user"]
    assert not [
        finding for finding in check(survey(Budget.of(user=40.0), popular=costly, **memos)) if finding.level == "error"
    ]
