"""Streams of changes in the collection file: what is refused, promised, planned and paid."""

import json
from pathlib import Path

import pytest

from hubbub.authoring import check, forecast, load_collection, promise
from hubbub.authoring.toml import EXAMPLE, read_collection
from hubbub.core.domain import Categorical, Ordinal, Sets
from hubbub.core.errors import InvalidValue
from hubbub.protocols.views.basic import View
from hubbub.questions import read_collection as read_signed
from hubbub.questions.changes import ChangingShares
from hubbub.questions.spending import cost_of, total_of, worst_of

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
        ("changes = 3", 'changes = 3\nqueries = "median"', "questions.moves.queries"),
        ("changes = 3", "changes = 3\nfanout = 1", "questions.moves.fanout"),
        ("changes = 3", 'changes = 3\nfields = ["theme", "theme"]', "questions.moves.field"),
        ('field = "theme"\nepsilon = 0.5', 'fields = ["theme", "theme"]\nepsilon = 0.5', "questions.moves.fields"),
        ('field = "theme"\nepsilon = 0.5', "epsilon = 0.5", "questions.moves.field"),
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
    for words in (
        "Time is divided into periods of 1 day. The device is on one of 5 levels, by a random number",
        "at most 7 in a period",
        "taken as one value, all reports of the period together are at most 2.72 times",
        "The reports of where carry the level of the device, one of 5",
    ):
        assert words in text, words


def test_the_plan_and_the_check_know_it() -> None:
    collection = load_collection(PLACES)
    (row,) = forecast(collection)
    assert (row.kind, row.mechanism, row.unit) == ("changes, 24 steps", "ChangeStream", "share")
    assert row.errors[100_000] is not None
    assert row.errors[1_000] == pytest.approx(10 * row.errors[100_000], rel=1e-6)
    assert {finding.where: finding.level for finding in check(collection)}["questions.where.changes"] == "note"
    assert read_signed(json.loads(json.dumps(collection.spec()))) == collection
    assert check(collection, against=collection)[-1].text == "nothing changed"


def test_a_new_version_that_leaves_it_as_it_is_goes_on() -> None:
    text = PLACES.read_text(encoding="utf-8")
    new = read_collection(text.replace("version = 1", "version = 2").replace("Where people are", "Where people go"))
    assert "questions.where" not in {finding.where for finding in check(new, against=read_collection(text))}


def test_what_is_followed_of_each_kind_of_field() -> None:
    bit = ChangingShares(domains={"on": Ordinal(2)}, steps=4, changes=2)
    assert (bit.labels(), bit.view([1, 0, 2]).tolist()) == (("on",), [[1], [0], [0]])
    sets = ChangingShares(domains={"x": Sets(Categorical(["a", "b", "c"]), most=2)}, steps=4, changes=2)
    assert (sets.labels(), sets.view([(0, 2), ()]).tolist()) == (("a", "b", "c"), [[1, 0, 1], [0, 0, 0]])
    three = ChangingShares(domains={"x": Ordinal(3)}, steps=4, changes=2)
    assert three.labels() == ("0", "1", "2")
    assert [statistic.mechanism(10**12).one for statistic in (bit, sets, three)] == [False, False, True]


def test_the_net_rule_has_a_smaller_error() -> None:
    text = PLACES.read_text(encoding="utf-8")
    assert 'kind = "changes"' in text
    by_net = read_collection(text.replace('kind = "changes"', 'kind = "changes"\nmechanism = "NetSub"'))
    (row,), (before,) = forecast(by_net), forecast(load_collection(PLACES))
    assert row.mechanism == "NetStream"
    error, larger = row.errors[100_000], before.errors[100_000]
    assert error is not None
    assert larger is not None
    assert 0.7 < error / larger < 0.95
    with pytest.raises(InvalidValue, match="ExSub or NetSub: they can report changes as they come"):
        read_collection(text.replace('kind = "changes"', 'kind = "changes"\nmechanism = "CoCo"'))


def test_several_fields_are_the_bits_of_all_of_them() -> None:
    tags = Sets(Categorical(["a", "b"]), most=2)
    several = ChangingShares(domains={"place": Ordinal(3), "on": Ordinal(2), "tags": tags}, steps=4, changes=2)
    assert several.labels() == ("place: 0", "place: 1", "place: 2", "on", "tags: a", "tags: b")
    records = [{"place": 1, "on": 1, "tags": (1,)}, {"place": None, "on": None, "tags": None}, {}, "nothing"]
    assert several.view(records).tolist() == [[0, 1, 0, 1, 0, 1], *[[0] * 6] * 3]
    stream = several.mechanism(10**12)
    assert (stream.one, stream.dimension, stream.changes) == (False, 6, 2)
    assert View.from_spec(json.loads(json.dumps(several.view.spec()))) == several.view
