"""Terms and promises, compiled and signed with the questions; and which asks they admit."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.authoring import check
from hubbub.collection import SignedCollection
from hubbub.collection.admits import admits, admits_parts, matches
from hubbub.collection.safety import Finding
from hubbub.collection.terms import Terms
from hubbub.core.domain import Domain, Ordinal
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import Arc, Ask
from hubbub.questions import Question, read_collection
from hubbub.questions.changes import ChangesQuestion
from hubbub.questions.collection import Collection
from hubbub.questions.spending import cost_of
from hubbub.questions.stream import StreamQuestion
from hubbub.random.source import Random
from tests.collection.conftest import QUESTIONS, make
from tests.shared.small_collections import changed
from tests.vectors import make_admits

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
        (9.0, {"page": MEMO, "desk": changed(MEMO, field="work")}, {"page": 4.5, "desk": 4.5}),
        (9.0, {"page": MEMO, "desk": changed(MEMO, field="work", permanent=6.0)}, {"page": 3.0, "desk": 6.0}),
        (5.0, {"page": MEMO, "desk": changed(MEMO, field="work", permanent=6.0)}, {"page": 2.5, "desk": 2.5}),
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
            assert isinstance(question, StreamQuestion)
            assert (promise.limit, promise.steps) == (round(question.epsilon * ONE), question.w)
        else:
            assert (promise.limit, promise.steps) == (round(question.epsilon * ONE), 1)
        if isinstance(question, ChangesQuestion):
            assert promise.interval == question.steps * collection.step_seconds
        assert terms.frozen == ("last" if question.kind in ("memo", "changes") else "step")
        asked = next(collection.protocol(name))
        ask = asked[0] if isinstance(asked, list) else asked
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
            SignedCollection.from_spec({key: value for key, value in spec.items() if key != name})


def test_a_question_that_could_never_be_answered_is_an_error() -> None:

    def errors(collection: Collection) -> list[Finding]:
        return [finding for finding in check(collection) if finding.level == "error"]

    costly = replace(SHARES, epsilon=5.0)
    memos = {
        name: changed(MEMO, field=field, epsilon=0.05, permanent=0.1) for name, field in (("a", "home"), ("b", "work"))
    }
    (error,) = errors(survey(Budget.of(user=5.5), popular=costly, **memos))
    assert error.where == "privacy.user"
    assert "never answer it" in error.text
    assert not errors(survey(Budget.of(user=40.0), popular=costly, **memos))


VECTORS = Path(__file__).parents[1] / "vectors"

KNOWN = json.loads((VECTORS / "admits.json").read_text())


@pytest.mark.parametrize("case", KNOWN["admits"], ids=lambda case: case["name"])
def test_an_ask_is_admitted_or_refused_for_a_reason(case: dict[str, Any]) -> None:
    terms, ask = Terms.from_spec(case["terms"], "popular"), Ask.from_spec(case["ask"])
    place = {name: case[name] for name in ("run", "round", "part")}
    theirs = {"elsewhere": make_admits.Elsewhere()}
    fields = {name: theirs.get(spec["kind"]) or Domain.from_spec(spec) for name, spec in case["fields"].items()}
    assert admits(terms, ask, **place, minimum_arc=case["minimum_arc"], fields=fields) == case["says"]


@pytest.mark.parametrize("case", KNOWN["admits_parts"], ids=lambda case: case["name"])
def test_parts_are_admitted_together_or_not_at_all(case: dict[str, Any]) -> None:
    terms = Terms.from_spec(case["terms"], "popular")
    asks = [Ask(mechanism=make_admits.GRR, step=0, cohort=Arc(**arc)) for arc in case["arcs"]]
    assert admits_parts(terms, asks, minimum_arc=case["minimum_arc"]) == case["says"]


@pytest.mark.parametrize("case", KNOWN["matches"], ids=lambda case: json.dumps([case["pattern"], case["given"]]))
def test_a_pattern_stands_for_what_it_says(case: dict[str, Any]) -> None:
    assert matches(case["pattern"], case["given"]) is case["says"]


def test_what_fits_is_read_by_the_mechanism_and_what_does_not_is_refused() -> None:
    """Whatever is admitted, every value has an answer: no value reveals itself by an error."""
    values: dict[str, Any] = {"kind": [0, 3, 99], "sets": [(), (0, 1, 2, 3), (7,)], "record": [{}, {"theme": 1}]}
    admitted = 0
    for view, row in zip(make_admits.VIEWS, KNOWN["families"]["says"], strict=True):
        for mechanism, says in zip(make_admits.FITTED, row, strict=True):
            if says is not None:
                assert says == "mechanism"
                continue
            admitted += 1
            kind = str(view.spec())
            shape = "sets" if "subset" in kind else "record" if "joint" in kind else "kind"
            rng = Random(seed=1)
            assert len(mechanism.randomize(view.look(values[shape], rng), rng)) == len(values[shape])
    assert admitted > 40


def test_what_a_mechanism_of_another_package_reads_is_its_domain_or_unknown() -> None:
    class Theirs(hb.GRR):
        """Its spec has names of ours that mean something else."""

        def spec(self) -> dict[str, Any]:
            return {**super().spec(), "domain": "ours", "dimension": 1}

    def says(mechanism: Any) -> str | None:
        terms = replace(make_admits.PLAIN, mechanisms=(mechanism.spec_id,))
        return admits(terms, Ask(mechanism=mechanism, step=7), fields={"theme": Ordinal(3)})

    assert says(Theirs(epsilon=1.0, domain=4)) is None
    small = Theirs(epsilon=1.0, domain=3)
    assert says(small) == "mechanism"
    object.__setattr__(small, "domain", "unknown")
    assert says(small) is None


def test_the_vectors_are_those_that_are_made() -> None:
    assert make_admits.vectors() == KNOWN


def test_every_reason_has_a_vector() -> None:
    words = {case["says"] for case in (*KNOWN["admits"], *KNOWN["admits_parts"])}
    assert words == {None, "run", "round", "part", "arc", "view", "mechanism", "state", "size", "limit", "parts"}


@pytest.mark.parametrize("case", KNOWN["groups"], ids=lambda case: json.dumps(case["terms"]["group"]))
def test_a_group_that_is_none_is_refused(case: dict[str, Any]) -> None:
    assert make_admits.readable(case["terms"]) is case["says"]


@pytest.mark.parametrize("case", KNOWN["terms"], ids=lambda case: json.dumps(case["terms"]["views"][0]["n"]))
def test_a_view_with_bounds_that_are_none_is_refused(case: dict[str, Any]) -> None:
    assert make_admits.readable(case["terms"]) is case["says"]
