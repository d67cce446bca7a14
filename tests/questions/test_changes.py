"""Streams of changes in the collection file: what is refused, promised, planned and paid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hubbub.authoring import check, forecast, load_collection, promise
from hubbub.authoring.toml import EXAMPLE, read_collection
from hubbub.collection.spending import cost_of, total_of, worst_of
from hubbub.core.domain import Categorical, Ordinal, Sets
from hubbub.core.errors import InvalidValue
from hubbub.questions import read_collection as read_signed
from hubbub.questions.changes import ChangingShares

PLACES = Path(__file__).parents[2] / "examples" / "places.toml"
QUESTION = '[questions.moves]\nkind = "changes"\nfield = "theme"\nepsilon = 0.5\nsteps = 8\nchanges = 3\n'
TEXT = f"{EXAMPLE.replace('event = 1.0', 'event = 1.5')}\n{QUESTION}"


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("steps = 8", "", "questions.moves.steps"),
        ("steps = 8", "steps = 1", "questions.moves.steps"),
        ("steps = 8", "steps = 5000", "questions.moves.steps"),
        ("changes = 3", "", "questions.moves.changes"),
        ("changes = 3", "changes = 0", "questions.moves.changes"),
        ("changes = 3", "changes = 3\nw = 3", "questions.moves.w"),
        ("changes = 3", 'changes = 3\nof = "mean"', "questions.moves.of"),
        ("changes = 3", 'changes = 3\ncandidates = ["light"]', "questions.moves.candidates"),
        ("changes = 3", 'changes = 3\nmechanism = "Collision"', "questions.moves.mechanism"),
        ('kind = "histogram"', 'kind = "histogram"\nsteps = 8', "questions.popular.steps"),
        ('kind = "categorical"\nnames = ["light", "dark"]', 'kind = "strings"\nlongest = 9', "questions.moves.field"),
        ('kind = "categorical"\nnames = ["light", "dark"]', 'kind = "ordinal"\nsize = 5000', "questions.moves.field"),
    ],
)
def test_an_error_names_its_place(old: str, new: str, where: str) -> None:
    assert old in TEXT
    text = TEXT.replace(old, new)
    if where.endswith("field"):  # the other question does not read texts
        text = text[: text.index("[questions.popular]")] + text[text.index("[questions.moves]") :]
    with pytest.raises(InvalidValue) as refused:
        read_collection(text)
    assert refused.value.field == where


def test_a_horizon_is_paid_once() -> None:
    collection = load_collection(PLACES)
    cost = cost_of(collection, "where")
    assert cost.each <= 10**12 < cost.each + 10**6
    assert [cost.of(steps) // cost.each for steps in (1, 24, 25, 48)] == [1, 1, 2, 2]
    # Enrolled in the last hour of a day, and in the first of the next.
    assert [cost.worst(steps) // cost.each for steps in (1, 2, 25, 26)] == [1, 2, 2, 3]
    assert total_of(collection, 24) == cost.each
    assert worst_of(collection, 24) == 2 * cost.each


def test_the_promise_tells_of_horizons_levels_and_changes() -> None:
    text = promise(load_collection(PLACES))
    for said in (
        "Time is divided into periods of 1 day. For each period the device picks one of 5 levels at random",
        "at most 7 in a period",
        "taken as one value, all reports of the period together are at most 2.72 times",
        "The reports of where carry the level that the device picked, one of 5",
    ):
        assert said in text, said


def test_the_plan_and_the_check_know_it() -> None:
    collection = load_collection(PLACES)
    (row,) = forecast(collection)
    assert (row.kind, row.mechanism, row.unit) == ("changes, 24 steps", "ChangeStream", "share")
    errors = [row.errors[n] for n in (1_000, 100_000)]
    assert errors[0] is not None
    assert errors[0] == pytest.approx(10 * errors[1], rel=1e-6)
    assert {finding.where: finding.level for finding in check(collection)}["questions.where.changes"] == "note"
    assert read_signed(json.loads(json.dumps(collection.spec()))) == collection
    assert check(collection, against=collection)[-1].text == "nothing changed"


def test_a_new_version_that_leaves_it_as_it_is_goes_on() -> None:
    text = PLACES.read_text(encoding="utf-8")
    new = read_collection(text.replace("version = 1", "version = 2").replace("Where people are", "Where people go"))
    assert "questions.where" not in {finding.where for finding in check(new, against=read_collection(text))}


def test_what_is_followed_of_each_kind_of_field() -> None:
    bit = ChangingShares(Ordinal(2), steps=4, changes=2)
    assert (bit.labels("on"), bit.view([1, 0, 2]).tolist()) == (("on",), [[1], [0], [0]])
    sets = ChangingShares(Sets(Categorical(["a", "b", "c"]), most=2), steps=4, changes=2)
    assert (sets.labels("x"), sets.view([(0, 2), ()]).tolist()) == (("a", "b", "c"), [[1, 0, 1], [0, 0, 0]])
    assert ChangingShares(Ordinal(3), steps=4, changes=2).labels("x") == ("0", "1", "2")
    assert [
        statistic.mechanism(10**12).one for statistic in (bit, sets, ChangingShares(Ordinal(3), steps=4, changes=2))
    ] == [
        False,
        False,
        True,
    ]
