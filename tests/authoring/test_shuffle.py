"""A collection whose reports are shuffled: what is refused, what is said, and what is promised."""

from dataclasses import replace
from typing import Any

import pytest

from hubbub import GRR, OUE, BasicRappor, Loloha, Measured, amplify
from hubbub.authoring import check, load_collection, promise
from hubbub.authoring.coalitions import coalitions, coalitions_of
from hubbub.authoring.toml import read_collection
from hubbub.collection import Keys, SignedCollection, seal
from hubbub.collection.safety import UnsafeCollection, open_collection
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import Mechanism
from hubbub.questions import read_collection as read_signed
from tests.shared.small_collections import THEME, collection_text

COLLECTOR = "0c" * 32


def keys_of(shufflers: int) -> list[dict[str, str]]:
    return [
        {"url": f"https://shuffler-{n}.example", "encryption_key": f"{n}a{'0' * 62}", "signing_key": f"{n}b{'0' * 62}"}
        for n in range(1, shufflers + 1)
    ]


def text_of(shufflers: int = 2) -> str:
    """The file of a collection that passes a number of shufflers."""
    return collection_text(
        trust="shuffle",
        privacy={"user": 10.0},
        fields={"theme": THEME},
        questions={"popular": {"kind": "histogram", "field": "theme", "epsilon": 2.0}},
        shuffle={
            "collector_key": COLLECTOR,
            "delta": 1e-6,
            "least": 1000,
            "fakes": 200,
            "shufflers": keys_of(shufflers),
        },
    )


TEXT = text_of()


def findings(text: str) -> list[tuple[str, str]]:
    return [(by_who.level, by_who.where) for by_who in check(read_collection(text))]


def changed(old: str, new: str, text: str = TEXT) -> str:
    assert old in text
    return text.replace(old, new, 1)


def test_it_is_read_and_signed() -> None:
    collection = load_collection(TEXT)
    assert read_signed(collection.spec()) == collection
    again = SignedCollection.from_spec(collection.spec())
    assert again.shuffle == collection.shuffle
    assert again.frame_bytes == collection.frame_bytes
    assert (collection.accepts_for, collection.lateness_seconds) == (300.0, 600)
    plain = replace(collection, trust="local", shuffle=None)
    assert "shuffle" not in plain.spec()


def test_batches_that_are_always_dropped() -> None:
    """A level of a stream has a part of the devices: 7.4% of 5,000 are fewer than 1,000."""
    stream = {"kind": "changes", "field": "theme", "epsilon": 2.0, "steps": 4, "changes": 2}
    shuffle = {"collector_key": COLLECTOR, "delta": 1e-6, "least": 1000, "fakes": 0, "shufflers": keys_of(2)}
    given: dict[str, Any] = {"trust": "shuffle", "fields": {"theme": THEME}, "shuffle": shuffle}
    for planned, warned in ((5_000, True), (200_000, False)):
        privacy = {"user": 10.0, "planned_devices": planned}
        text = collection_text(**given, privacy=privacy, questions={"popular": stream})
        told = [each.text for each in check(read_collection(text)) if each.where == "shuffle.least"]
        assert bool(told) == warned
        assert all("the smallest batch of popular has 369 of" in each for each in told)


BROKEN = [
    ('trust = "shuffle"', 'trust = "local"', "shuffle"),
    ("least = 1000", "least = 1", "shuffle.least"),
    ("least = 1000", "least = 1000.0", "shuffle.least"),
    ("delta = 1e-06", "delta = 1.0", "shuffle.delta"),
    ("delta = 1e-06", 'delta = "small"', "shuffle.delta"),
    ("fakes = 200", "fakes = -1", "shuffle.fakes"),
    ("fakes = 200", "fake = 200", "shuffle.shuffle"),
    (COLLECTOR, "0c", "shuffle.collector_key"),
    (COLLECTOR, f"1a{'0' * 62}", "shuffle.shufflers"),
    ("https://shuffler-1.example", "shuffler-1.example", "shuffle.url"),
    ('lateness = "10m"', 'lateness = "3s"', "schedule.lateness"),
    (f"2b{'0' * 62}", f"1b{'0' * 62}", "shuffle.shufflers"),
]


@pytest.mark.parametrize(("old", "new", "where"), BROKEN, ids=[f"{where}-{k}" for k, (*_, where) in enumerate(BROKEN)])
def test_an_error_names_its_place(old: str, new: str, where: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        load_collection(changed(old, new))
    assert refused.value.field == where


NUMBERS = """
[fields.size]
kind = "ordinal"
size = 9

[fields.price]
kind = "numeric"
low = 0.0
high = 100.0
cells = 100

[override]
sent_as_it_is = "the shop knows its prices"
"""


def linked(kind: str) -> str:
    """The collection with a question whose reports can be linked to a device."""
    keys = {
        "memo": "permanent = 3.0",
        "changes": "steps = 4\nchanges = 2",
        "table": 'columns = ["theme", "size"]\nmeasures = ["price"]',
    }[kind]
    text = changed('kind = "histogram"', f'kind = "{kind}"\n{keys}').replace("fakes = 200", "fakes = 0")
    return text.replace('field = "theme"\n', "") + NUMBERS if kind == "table" else text


@pytest.mark.parametrize("kind", ["memo", "table"])
def test_linkable_questions_are_refused(kind: str) -> None:
    text = linked(kind)
    assert ("error", "questions.popular") in findings(text)
    with pytest.raises(UnsafeCollection, match="undoes the shuffle"):
        load_collection(text)


@pytest.mark.parametrize("kind", ["memo", "table"])
def test_no_epsilon_of_a_shuffle_is_printed_for_them(kind: str) -> None:
    collection = read_collection(linked(kind))
    assert coalitions_of(collection, "popular") == []
    assert "in the smallest batch" not in promise(collection)


@pytest.mark.parametrize(
    "mechanism",
    [Measured(epsilon=2.0, domain=3), BasicRappor(epsilon=2.0, domain=3), Loloha(epsilon=2.0, domain=3)],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_the_table_of_coalitions_refuses_linkable_mechanisms(mechanism: Mechanism) -> None:
    route = load_collection(TEXT).shuffle
    assert route is not None
    with pytest.raises(InvalidValue, match="mechanism"):
        coalitions(mechanism, route, 1000)


@pytest.mark.parametrize("kind", ["memo", "table"])
def test_devices_refuse_them_too(kind: str) -> None:
    """By the signed terms alone: a device knows no kinds."""
    keys, unsafe = Keys.new(), read_collection(linked(kind))
    with pytest.raises(UnsafeCollection, match="undoes the shuffle"):
        open_collection(seal(unsafe.spec(), keys.private), keys.public)


def test_fakes_only_where_they_can_be_taken_off() -> None:
    assert ("error", "shuffle.fakes") in findings(changed("epsilon = 2.0", 'epsilon = 2.0\nmechanism = "OUE"'))
    assert ("error", "shuffle.fakes") in findings(changed("epsilon = 2.0", "epsilon = 2.0\nkeep_reports = true"))
    assert ("error", "shuffle.fakes") not in findings(changed("epsilon = 2.0", 'epsilon = 2.0\nmechanism = "OLH"'))


@pytest.mark.parametrize(("oracle", "fits"), [("OLH", True), ("adaptive", False), ("best", False)])
def test_marginals_are_shuffled_by_an_oracle_whose_fakes_can_be_taken_off(oracle: str, fits: bool) -> None:
    keys = f'fields = ["theme", "size"]\noracle = "{oracle}"'
    text = changed('kind = "histogram"\nfield = "theme"', f'kind = "marginals"\n{keys}')
    text = text.replace("epsilon = 2.0", "epsilon = 0.5") + '[fields.size]\nkind = "ordinal"\nsize = 3\n'
    assert (("error", "shuffle.fakes") in findings(text)) != fits
    assert coalitions_of(read_collection(text), "popular") or not fits


def test_small_batches_need_a_reason() -> None:
    assert ("error", "shuffle.least") in findings(changed("least = 1000", "least = 10"))
    reason = '\n[override]\nminimum_batch_below_20 = "a test"\n'
    assert ("error", "shuffle.least") not in findings(changed("least = 1000", "least = 10") + reason)


def test_what_is_worth_knowing() -> None:
    assert ("warning", "shuffle.shufflers") in findings(text_of(shufflers=1))
    assert ("note", "shuffle.fakes") in findings(changed("fakes = 200", "fakes = 0"))
    assert ("warning", "shuffle.shufflers") in findings(changed("https://shuffler-1", "http://shuffler-1"))
    assert not [where for _, where in findings(TEXT) if where.startswith("shuffle")]


def test_the_promise_says_who_must_work_together() -> None:
    text = promise(load_collection(TEXT))
    assert "pass 2 shufflers (https://shuffler-1.example and https://shuffler-2.example)" in text
    assert "batches of at least 1,000 people's reports" in text
    assert "the collector and all shufflers: epsilon 2 (in a year epsilon " in text
    assert "the first shuffler sees which devices send" in text


def test_coalitions_are_those_of_amplify() -> None:
    collection = load_collection(TEXT)
    route, grr = collection.shuffle, GRR(epsilon=2.0, domain=3)
    assert route is not None
    by_who = {coalition.who: coalition for coalition in coalitions_of(collection, "popular")}
    expected = {
        "the collector": amplify(grr, n=1000, delta=1e-6, fakes=400),
        "the collector and all shufflers but one": amplify(grr, n=1000, delta=1e-6, fakes=200),
        "the collector and everyone else who takes part": amplify(grr, n=1, delta=1e-6, fakes=400),
        "the collector, everyone else and all shufflers but one": amplify(grr, n=1, delta=1e-6, fakes=200),
    }
    for who, bound in expected.items():
        assert (by_who[who].epsilon, by_who[who].delta) == (bound.epsilon, bound.delta)
    assert by_who["the collector and all shufflers"].epsilon == grr.effective_epsilon
    none = {coalition.who: coalition.epsilon for coalition in coalitions(grr, replace(route, fakes=0), 1000)}
    assert none["the collector and everyone else who takes part"] == 2.0


def test_where_there_are_several_mechanisms_the_bound_is_of_any() -> None:
    """A question whose asks differ in epsilon: the bound holds for whatever spends as much."""
    text = changed('kind = "histogram"', 'kind = "stream"\nmethod = "LBA"\nw = 4').replace("fakes = 200", "fakes = 0")
    collection = load_collection(text)
    alone, *_, everyone = coalitions_of(collection, "popular")
    assert everyone.epsilon == pytest.approx(2.0)
    assert amplify(GRR(epsilon=2.0, domain=3), n=1000, delta=1e-6).epsilon < alone.epsilon < 2.0


def test_fakes_that_hide_nothing_for_sure_are_not_counted() -> None:
    """A file with an error is still explained, by what holds whatever the fakes are."""
    route, oue = load_collection(TEXT).shuffle, OUE(epsilon=2.0, domain=3)
    assert route is not None
    alone, others, all_others, one_left, everyone = (coalition.epsilon for coalition in coalitions(oue, route, 1000))
    assert alone == others == amplify(oue, n=1000, delta=1e-6).epsilon
    assert all_others == one_left == everyone == oue.effective_epsilon
    assert coalitions(2.0, route, 1000)[0].epsilon < 2.0


def test_a_delta_that_allows_to_show_a_whole_report_is_refused() -> None:
    assert ("error", "shuffle.delta") in findings(changed("delta = 1e-06", "delta = 1e-3"))
    assert ("error", "shuffle.delta") not in findings(changed("delta = 1e-06", "delta = 1e-4"))
