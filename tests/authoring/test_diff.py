"""A change is a new version, and what it breaks is said."""

import dataclasses
from dataclasses import replace
from typing import Any

import pytest

from hubbub.authoring import check
from hubbub.authoring.check import changes
from hubbub.collection.safety import CLAUSES, weaker_clauses
from hubbub.collection.shuffle_route import RouteShuffler, ShuffleRoute
from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from tests.collection.conftest import QUESTIONS, make

FIELDS: dict[str, Domain] = {
    "theme": Categorical(["light", "dark"]),
    "level": Ordinal(10),
    "seconds": Numeric(0.0, 20.0, cells=8),
}
ASKED: dict[str, Question] = {
    "q": Question.make(kind="histogram", field="theme", epsilon=1.0),
    "s": Question.make(kind="stream", field="level", epsilon=1.0, method="LPA", w=4),
    "k": QUESTIONS["kept"],
}


def fields(**change: Domain) -> dict[str, Any]:
    return {"fields": {**FIELDS, **change}}


def questions(**change: Question | None) -> dict[str, Any]:
    return {"questions": {name: asked for name, asked in {**ASKED, **change}.items() if asked is not None}}


def asking(name: str, **keys: Any) -> dict[str, Any]:
    """One question asks otherwise."""
    asked: Any = ASKED[name]
    return questions(**{name: replace(asked, **keys)})


def spending(**limits: Any) -> dict[str, Any]:
    """Other limits; None takes one away."""
    kept = {"event": 6.0, "window": (40.0, 7), "user": 100.0, **limits}
    return {"budget": Budget.of(**{name: limit for name, limit in kept.items() if limit is not None})}


OLD = make(fields=FIELDS, questions=ASKED, lateness_seconds=600, **spending())
ROUTE = ShuffleRoute(
    shufflers=(
        RouteShuffler("https://first.example", "0a" * 32, "1a" * 32),
        RouteShuffler("https://second.example", "0b" * 32, "1b" * 32),
    ),
    collector_key="0c" * 32,
    delta=1e-6,
    least=100,
    fakes=10,
)
CHANGES: list[tuple[dict[str, Any], str, str, str]] = [
    ({"title": "Another"}, "title", "note", "nothing else breaks"),
    (fields(more=Ordinal(3)), "fields.more", "note", "new"),
    ({"fields": {key: FIELDS[key] for key in ("theme", "level")}}, "fields.seconds", "warning", "removed"),
    (fields(theme=Categorical(["light", "dark", "blue"])), "fields.theme", "warning", "now also blue"),
    (fields(theme=Categorical(["light", "blue"])), "fields.theme", "warning", "no longer dark"),
    (fields(theme=Categorical(["dark", "light"])), "fields.theme", "warning", "another order"),
    (fields(level=Ordinal(11)), "fields.level", "warning", "from ordinal size=10 to ordinal size=11"),
    (fields(theme=Ordinal(2)), "fields.theme", "warning", "cannot be joined"),
    (questions(q=None), "questions.q", "note", "nothing else breaks"),
    (questions(more=ASKED["q"]), "questions.more", "warning", "epsilon 1 more in a step, 5 in all instead of 4"),
    (asking("q", epsilon=2.0), "questions.q.epsilon", "warning", "from 1.0 to 2.0"),
    (asking("q", epsilon=0.5), "questions.q.epsilon", "note", "errors grow"),
    (asking("k", permanent=3.0), "questions.k.permanent", "warning", "from 2.0 to 3.0"),
    (asking("q", field="level"), "questions.q.field", "warning", "cannot be joined"),
    (asking("q", mechanism="OUE"), "questions.q.mechanism", "warning", "from nothing to OUE"),
    (asking("q", title="?"), "questions.q.title", "note", "another text"),
    (asking("q", consistency="auto"), "questions.q.consistency", "note", "told another way: nothing else breaks"),
    (asking("s", w=5), "questions.s.w", "warning", "from 4 to 5"),
    (asking("s", method="LPU"), "questions.s.method", "warning", "from LPA to LPU"),
    (spending(event=7.0), "privacy.event", "error", "a new collection"),
    (spending(event=5.0), "privacy.event", "note", "a stricter promise"),
    (spending(user=None), "privacy.user", "error", "at most epsilon 100 in a life is no longer promised"),
    (spending(window=None), "privacy.window", "error", "epsilon 40 in 7 hours"),
    (spending(window=(40.0, 6)), "privacy.window", "error", "in 7 hours"),
    (asking("q", epsilon=2.0), "questions.q", "error", "a new collection"),
    (asking("s", w=3), "questions.s", "error", "in 4 hours"),
    ({"step_seconds": 600}, "privacy.event", "error", "in 1 hour"),
    (spending(window=(40.0, 8)), "privacy.window.steps", "warning", "from 7 to 8"),
    ({"minimum_batch": 50}, "privacy.minimum_batch", "error", "and now on 50"),
    ({"minimum_batch": 500}, "privacy.minimum_batch", "note", "stricter"),
    ({"minimum_arc": 1 << 20}, "privacy.minimum_arc", "error", "of the devices were asked at a time"),
    ({"planned_devices": 200_000}, "privacy.planned_devices", "note", "from nothing to 200000"),
    ({"divide": True}, "population.divide", "warning", "divided anew between the questions"),
    ({"cover": True}, "privacy.cover", "note", "as much as a device that answers"),
    ({"trust": "shuffle", "shuffle": ROUTE}, "trust", "note", "devices send to the first"),
    (asking("k", permanent=3.0), "questions.k", "warning", "only new devices answer it"),
    ({"step_seconds": 7200}, "schedule.step", "warning", "from 1 hour to 2 hours"),
    ({"origin": 60}, "schedule.origin", "warning", "streams start again; what devices have spent still counts"),
    (
        spending(user=50.0),
        "privacy.user",
        "note",
        "a device that has already spent that much answers only from the permanent answers",
    ),
    ({"lateness_seconds": 60}, "schedule.lateness", "note", "another time"),
    ({"retention_days": 91}, "schedule.retention", "error", "and now for 91"),
    ({"retention_days": 89}, "schedule.retention", "note", "sooner"),
    (
        {"minimum_batch": 10, "overrides": {"minimum_batch_below_20": "a test"}},
        "override.minimum_batch_below_20",
        "warning",
        "set aside",
    ),
]


def against(old: Collection = OLD, **change: Any) -> dict[str, list[tuple[str, str]]]:
    """What a change to version 2 brings, apart from what the new version would be told anyway."""
    new = replace(old, **{"version": 2, **change})
    known = check(new)
    findings: dict[str, list[tuple[str, str]]] = {}
    for finding in check(new, against=old):
        if finding not in known:
            findings.setdefault(finding.where, []).append((finding.level, finding.text))
    return findings


@pytest.mark.parametrize(
    ("change", "where", "level", "words"), CHANGES, ids=[f"{where}-{k}" for k, (_, where, *_) in enumerate(CHANGES)]
)
def test_every_change_is_explained_and_needs_a_version(
    change: dict[str, Any], where: str, level: str, words: str
) -> None:
    findings = against(**change)
    assert [found_level for found_level, text in findings[where] if words in text] == [level]
    assert [found_level for found_level, _ in findings["version"]] == ["note"]
    ((stuck, text),) = against(**change, version=1)["version"]
    assert stuck == "error"
    assert "make it 2" in text


def test_every_part_of_a_collection_is_compared() -> None:
    """Whatever changes the id is found: no field of a collection is forgotten."""
    for change, *_ in CHANGES:
        assert replace(OLD, **change).collection_id != OLD.collection_id
    named = {key for change, *_ in CHANGES for key in change}
    assert named | {"name", "version"} == {field.name for field in dataclasses.fields(OLD) if field.init}


@pytest.mark.parametrize(
    ("change", "where", "level"),
    [
        ({"shufflers": ROUTE.shufflers[:1]}, "shuffle.shufflers", "error"),
        ({"least": 99}, "shuffle.least", "error"),
        ({"fakes": 9}, "shuffle.fakes", "error"),
        ({"delta": 1e-5}, "shuffle.delta", "error"),
        ({"collector_key": "0e" * 32}, "shuffle", "note"),
        (None, "trust", "error"),
    ],
    ids=["fewer shufflers", "smaller batches", "fewer fakes", "a larger delta", "another key", "none at all"],
)
def test_a_weaker_shuffle_is_a_new_collection(change: dict[str, Any] | None, where: str, level: str) -> None:
    old = replace(OLD, trust="shuffle", shuffle=ROUTE)
    route = None if change is None else replace(ROUTE, **change)
    new = replace(old, version=2, trust="local" if route is None else "shuffle", shuffle=route)
    assert [finding.level for finding in changes(new, old) if finding.where == where] == [level]
    assert not weaker_clauses(old, old)


def test_versions() -> None:
    assert against(version=1) == {"version": [("note", "nothing changed")]}
    assert [level for level, _ in against(version=2)["version"]] == ["warning"]
    assert [level for level, _ in against(replace(OLD, version=3), version=2)["version"]] == ["error"]


def test_another_name_is_another_collection() -> None:
    findings = against(name="other")
    assert list(findings) == ["name"]
    assert findings["name"][0][0] == "error"


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Another"},
        {"step_seconds": 7200},
        {"origin": 60},
        spending(window=(40.0, 8), user=90.0),
        asking("q", epsilon=0.5),
        asking("q", mechanism="OUE"),
        asking("s", w=5),
        questions(q=None),
    ],
)
def test_what_promises_as_much_is_a_version(change: dict[str, Any]) -> None:
    assert weaker_clauses(replace(OLD, **{"version": 2, **change}), OLD) == []


def test_no_cover_where_there_was_some_is_a_weaker_promise() -> None:
    old = replace(OLD, cover=True)
    assert [clause.where for clause in weaker_clauses(replace(OLD, version=2), old)] == ["privacy.cover"]


def test_keeping_single_reports_is_a_weaker_promise() -> None:
    kept = asking("q", keep_reports=True)
    new = replace(OLD, version=2, **kept)
    assert [clause.where for clause in weaker_clauses(new, OLD)] == ["questions.q.keep_reports"]
    assert weaker_clauses(replace(OLD, version=2), replace(OLD, **kept)) == []


def test_every_clause_of_the_signed_document_is_compared_or_has_its_reason() -> None:
    """Whoever adds a clause says whether a change of it can promise less."""
    assert OLD.spec().keys() <= CLAUSES.keys()
