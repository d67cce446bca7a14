"""Makes `weaker.json`: versions of collections, and where every client finds that the later one promises less.

    python -m tests.vectors.make_weaker

"documents" has signed documents. A case is {"name", "of", "was", "now", "clauses"}: `was` and `now` are the fields in
which the older and the newer version differ from the document `of`, and `clauses` has the keys that promise less.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hubbub.collection.shuffle_route import ObliviousRoute, RouteShuffler, ShuffleRoute
from hubbub.core.domain import Categorical, Numeric, Ordinal
from hubbub.core.spec import canonical
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import CIRCLE
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from tests.shared.dgk_keys import homomorphic_key
from tests.shared.small_collections import changed as changed_question

PLACE = Path(__file__).with_name("weaker.json")
QUESTIONS = {
    "bought": Question.make(kind="table", columns=("theme", "level"), epsilon=1.0),
    "popular": Question.make(kind="histogram", field="theme", epsilon=1.0),
    "trend": Question.make(kind="stream", field="level", epsilon=1.0, method="LPA", w=4),
}
ALONE = {name: QUESTIONS[name] for name in ("popular", "trend")}
LOCAL = Collection(
    name="themes",
    title="Light or dark?",
    fields={"theme": Categorical(["light", "dark"]), "level": Ordinal(10), "price": Numeric(0.0, 100.0, cells=10)},
    questions=QUESTIONS,
    budget=Budget.of(event=6.0, window=(40.0, 7), user=100.0),
    step_seconds=3600,
    lateness_seconds=600,
    planned_devices=200_000,
    cover=True,
)
ROUTE = ShuffleRoute(
    shufflers=tuple(RouteShuffler(f"https://{k}.example", f"0{k}" * 32, f"1{k}" * 32) for k in "ab"),
    collector_key="0c" * 32,
    delta=1e-6,
    least=100,
    fakes=10,
)
SHUFFLED = replace(LOCAL, questions={"popular": QUESTIONS["popular"]}, trust="shuffle", shuffle=ROUTE)
SHARED = {
    "trust": "oblivious",
    "shuffle": ObliviousRoute(
        shufflers=tuple(RouteShuffler(f"https://{k}.example", f"0{k}" * 32, f"1{k}" * 32) for k in "abd"),
        collector_key="0c" * 32,
        delta=1e-6,
        least=100,
        fakes=20,
        homomorphic_key=homomorphic_key(),
    ),
}
DOCUMENTS = {"local": LOCAL, "shuffled": SHUFFLED}
CLEAR = {"overrides": {"sent_as_it_is": "the shop knows its prices"}}


def asked(**change: Any) -> dict[str, Any]:
    """The questions, some of them changed or left out."""
    return {"questions": {name: question for name, question in {**QUESTIONS, **change}.items() if question is not None}}


def popular(**change: Any) -> dict[str, Any]:
    return asked(popular=changed_question(QUESTIONS["popular"], **change))


def shuffled(**change: Any) -> dict[str, Any]:
    return {"shuffle": replace(ROUTE, **change)}


MEASURED = {**asked(bought=changed_question(QUESTIONS["bought"], measures=("price",))), **CLEAR}
REASON = {"overrides": {"epsilon_above_8": "because"}}
KEPT = asked(more=changed_question(QUESTIONS["popular"], keep_reports=True))
SHORTER = asked(trend=changed_question(QUESTIONS["trend"], w=3))
MEMO = asked(more=Question.make(kind="memo", field="theme", epsilon=1.0, permanent=2.0))

CASES: list[tuple[str, str, dict[str, Any], dict[str, Any], list[str]]] = [
    ("nothing but the number", "local", {}, {}, []),
    ("another title", "local", {}, {"title": "Dark or light?"}, []),
    ("longer retention", "local", {}, {"retention_days": 3650}, ["schedule.retention"]),
    ("shorter retention", "local", {}, {"retention_days": 30}, []),
    ("smaller batches", "local", {}, {"minimum_batch": 20}, ["privacy.minimum_batch"]),
    ("larger batches", "local", {}, {"minimum_batch": 200}, []),
    ("shorter arcs", "local", {}, {"minimum_arc": CIRCLE // 2000}, ["privacy.minimum_arc", "privacy.planned_devices"]),
    ("longer arcs", "local", {}, {"minimum_arc": CIRCLE // 100}, []),
    ("planned for fewer", "local", {}, {"planned_devices": 100_000}, ["privacy.planned_devices"]),
    ("no size stated", "local", {}, {"planned_devices": None}, ["privacy.planned_devices"]),
    ("a size stated at last", "local", {"planned_devices": None}, {}, []),
    ("planned for fewer, of longer arcs", "local", {}, {"planned_devices": 1000, "minimum_arc": CIRCLE // 5}, []),
    ("no cover", "local", {}, {"cover": False}, ["privacy.cover"]),
    (
        "no division of the people",
        "local",
        {"questions": ALONE, "divide": True},
        {"questions": ALONE, "divide": False},
        ["population.divide"],
    ),
    ("a division of the people at last", "local", {"questions": ALONE}, {"questions": ALONE, "divide": True}, []),
    ("reports are kept", "local", {}, popular(keep_reports=True), ["questions.popular.keep_reports"]),
    ("reports are no longer kept", "local", popular(keep_reports=True), {}, []),
    ("reports about an earlier field are kept by a new question", "local", {}, KEPT, ["questions.more.keep_reports"]),
    ("numbers in clear", "local", {}, MEASURED, ["questions.bought.measures"]),
    ("numbers in clear as before", "local", MEASURED, MEASURED, []),
    ("linked reports", "local", {}, MEMO, ["questions.more"]),
    ("linked reports as before", "local", MEMO, MEMO, []),
    ("a larger epsilon", "local", {}, popular(epsilon=2.0), ["questions.popular"]),
    ("a smaller epsilon", "local", {}, popular(epsilon=0.5), []),
    ("a shorter window of a stream", "local", {}, SHORTER, ["questions.trend"]),
    ("one question less", "local", {}, asked(trend=None), []),
    ("more in a step", "local", {}, {"budget": Budget.of(event=7.0, window=(40.0, 7), user=100.0)}, ["privacy.event"]),
    ("no window", "local", {}, {"budget": Budget.of(event=6.0, user=100.0)}, ["privacy.window"]),
    ("no limit for life", "local", {}, {"budget": Budget.of(event=6.0, window=(40.0, 7))}, ["privacy.user"]),
    ("a stricter window", "local", {}, {"budget": Budget.of(event=6.0, window=(30.0, 8), user=90.0)}, []),
    ("a reason for more than 8", "local", {}, REASON, ["override.epsilon_above_8"]),
    ("no shufflers", "shuffled", {}, {"trust": "local", "shuffle": None}, ["trust"]),
    ("shufflers at last", "shuffled", {"trust": "local", "shuffle": None}, {}, []),
    ("fewer shufflers", "shuffled", {}, shuffled(shufflers=ROUTE.shufflers[:1]), ["shuffle.shufflers"]),
    ("smaller shuffled batches", "shuffled", {}, shuffled(least=99), ["shuffle.least"]),
    ("fewer fakes", "shuffled", {}, shuffled(fakes=9), ["shuffle.fakes"]),
    ("a larger delta", "shuffled", {}, shuffled(delta=1e-5), ["shuffle.delta"]),
    ("shares instead of layers", "shuffled", {}, SHARED, ["trust"]),
    ("layers instead of shares", "shuffled", SHARED, {}, ["trust"]),
    ("another key", "shuffled", {}, shuffled(collector_key="0d" * 32), []),
    (
        "several at once",
        "shuffled",
        {},
        {**shuffled(least=50, fakes=0), "retention_days": 91, "cover": False},
        ["privacy.cover", "schedule.retention", "shuffle.fakes", "shuffle.least"],
    ),
]


def vectors() -> dict[str, Any]:
    """All of the file."""
    documents = {name: _json(collection) for name, collection in DOCUMENTS.items()}
    cases = [
        {
            "name": name,
            "of": of,
            "was": _differences(documents[of], _json(replace(DOCUMENTS[of], **was))),
            "now": _differences(documents[of], _json(replace(DOCUMENTS[of], **{"version": 2, **now}))),
            "clauses": clauses,
        }
        for name, of, was, now, clauses in CASES
    ]
    return {"documents": documents, "cases": cases}


def changed(document: dict[str, Any], differences: dict[str, Any]) -> dict[str, Any]:
    """The document with other fields; those that are null are left out."""
    return {name: value for name, value in {**document, **differences}.items() if value is not None}


def _differences(document: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {name: other.get(name) for name in document | other if other.get(name) != document.get(name)}


def _json(collection: Collection) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(canonical(collection.spec()))
    return spec


if __name__ == "__main__":
    PLACE.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n")
