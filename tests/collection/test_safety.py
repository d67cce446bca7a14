"""Which collections a device refuses by their signed terms, and which versions because they promise less."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import check
from hubbub.collection import Keys, SignedCollection, seal
from hubbub.collection.safety import CLAUSES, UnsafeCollection, open_collection, unsafe_terms, weaker_clauses
from hubbub.collection.terms import Study, Terms
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from tests.collection.conftest import QUESTIONS, each, make
from tests.shared.small_collections import changed
from tests.vectors import make_weaker

KEYS = Keys(b"k" * 32)
MEMO = QUESTIONS["kept"]
THEMES = QUESTIONS["themes"]
COSTLY_WINDOW = Question.make("stream", field="theme", epsilon=9.0, method="LBU", w=20)
"""A step costs little, and the window much."""


def opened(collection: Collection) -> SignedCollection:
    return open_collection(seal(collection.spec(), KEYS.private), KEYS.public)


def test_every_kind_is_safe_without_being_known(everything: Collection) -> None:
    device = opened(everything)
    assert not hasattr(device, "questions")
    assert device.terms == everything.terms
    assert device.collection_id == everything.collection_id


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"minimum_batch": 19}, "privacy.minimum_batch"),
        ({"planned_devices": 1000}, "privacy.minimum_arc"),
        ({"questions": {"q": replace(THEMES, epsilon=8.5)}, "budget": Budget.of(event=9.0)}, "questions.q"),
        ({"questions": {"q": changed(MEMO, permanent=8.5)}, "budget": Budget.of(user=99.0)}, "questions.q"),
        ({"questions": {"q": COSTLY_WINDOW}, "budget": Budget.of(window=(9.0, 20))}, "questions.q"),
        ({"questions": {"q": MEMO}, "budget": Budget.of(event=9.0)}, "privacy.user"),
        ({"questions": {"q": THEMES}, "budget": Budget.of(event=0.5)}, "privacy.event"),
        ({"questions": {"q": THEMES}, "budget": Budget.of(event=1.0, window=(0.5, 9))}, "privacy.window"),
    ],
)
def test_an_unsafe_collection_is_refused(change: dict[str, Any], where: str) -> None:
    collection = make(**change)
    assert [finding.where for finding in unsafe_terms(collection)] == [where]
    assert any(finding.level == "error" and finding.where.startswith(where) for finding in check(collection))
    with pytest.raises(UnsafeCollection, match=where.replace(".", r"\.")):
        opened(collection)


def test_a_collection_without_a_limit_is_refused() -> None:
    spec = {**make().spec(), "promises": []}
    with pytest.raises(UnsafeCollection, match="no limit of what a device may spend"):
        open_collection(seal(spec, KEYS.private), KEYS.public)


def test_a_reason_allows_what_advice_is_against() -> None:
    reasons = {"epsilon_above_8": "tests", "minimum_batch_below_20": "tests"}
    questions = {"q": replace(THEMES, epsilon=8.5)}
    collection = make(questions=questions, budget=Budget.of(event=9.0), minimum_batch=5, overrides=reasons)
    assert opened(collection).minimum_batch == 5


HOSTILE: dict[str, list[Any]] = {
    "fields": [[], ["nothing"], "theme"],
    "frozen": ["never", "study"],
    "views": [[], [{}], [3]],
    "mechanisms": [[], [3]],
    "families": [[{"mechanism": "GRR"}], *([{"mechanism": "GRR", "units": units}] for units in ([], [2, 1], [0]))],
    "rounds": [0, True, 1 << 20],
    "parts": [0],
    "account": [""],
    "state": [None],
    "limit": [0, 1.5],
    "promises": [[], {}],
    "report_bytes": [0, 1 << 30],
    # The second has all keys, but values are frozen by steps.
    "study": [{"start": 0, "round_seconds": 60}, {"start": 0, "round_seconds": 60, "every": 0}],
    "more": [1],
}


@pytest.mark.parametrize(("key", "value"), each(HOSTILE))
def test_hostile_terms_are_refused(key: str, value: Any) -> None:
    spec: dict[str, Any] = make(questions={"q": THEMES}).spec()
    spec["terms"]["q"] = {**spec["terms"]["q"], key: value}
    with pytest.raises(InvalidValue, match=r"terms\.q"):
        SignedCollection.from_spec(spec)


def test_a_frame_of_another_size_is_refused() -> None:
    spec: dict[str, Any] = make().spec()
    for size in (0, 1024, 1 << 40, "x", None):
        with pytest.raises(InvalidValue, match="frame_bytes"):
            SignedCollection.from_spec({**spec, "frame_bytes": size})
    several: list[Any] = [{}, {**spec["terms"], "more": spec["terms"]["themes"]}, []]
    for terms in several:
        with pytest.raises(InvalidValue, match="terms"):
            SignedCollection.from_spec({**spec, "terms": terms})


def test_the_times_of_rounds_come_from_terms_alone() -> None:
    device = opened(make(origin=1000, step_seconds=60, budget=Budget.of(event=20.0, user=1000.0)))
    assert device.terms["theme_now"].rounds == 2
    assert [device.round_times("theme_now", 0, 3, number) for number in (1, 2)] == [(1180, 1210), (1210, 1240)]
    assert device.round_times("themes", 0, 3, 1) == (1180, 1240)


def test_a_study_has_rounds_of_its_own() -> None:
    collection = make(questions={"q": THEMES})
    terms = replace(
        collection.terms["q"], frozen="study", rounds=3, study=Study(start=500, round_seconds=10, every=100)
    )
    assert Terms.from_spec(terms.spec(), "q") == terms
    spec: dict[str, Any] = collection.spec()
    device = SignedCollection.from_spec({**spec, "terms": {"q": terms.spec()}})
    assert [device.round_times("q", 0, 0, number)[0] for number in (1, 2, 3)] == [500, 510, 520]
    assert device.round_times("q", 2, 0, 3) == (720, 730)
    for every in (1, 29, -1):
        with pytest.raises(InvalidValue, match="every"):
            Terms.from_spec(replace(terms, study=Study(500, 10, every)).spec(), "q")


def test_a_life_that_is_paid_once_needs_no_other_limit() -> None:
    """A promise for life of no more than one step: nothing costs again."""
    collection = make(questions={"q": THEMES}, budget=Budget.of(event=1.0))
    terms = collection.terms["q"]
    life = replace(terms.promises[0], limit=terms.limit, steps=0, interval=0, origin=0)
    for limit, wanted in ((terms.limit, []), (2 * UNITS_PER_EPSILON, ["privacy.user"])):
        promised = replace(terms, promises=(replace(life, limit=limit),))
        device = SignedCollection.from_spec({**collection.spec(), "terms": {"q": promised.spec()}})
        assert [finding.where for finding in unsafe_terms(device)] == wanted


VECTORS = Path(__file__).parents[1] / "vectors"

KNOWN = json.loads((VECTORS / "weaker.json").read_text())


@pytest.mark.parametrize("case", KNOWN["cases"], ids=lambda case: case["name"])
def test_a_device_finds_the_clauses_that_promise_less(case: dict[str, Any]) -> None:
    document = KNOWN["documents"][case["of"]]
    old, new = (SignedCollection.from_spec(make_weaker.changed(document, case[name])) for name in ("was", "now"))
    assert sorted(clause.where for clause in weaker_clauses(new, old)) == case["clauses"]


def test_the_vectors_are_those_of_their_program_and_weaken_every_clause() -> None:
    assert make_weaker.vectors() == KNOWN
    weakened = {name for case in KNOWN["cases"] if case["clauses"] for name in (*case["was"], *case["now"])}
    assert weakened >= {name for name, rule in CLAUSES.items() if not isinstance(rule, str)}
