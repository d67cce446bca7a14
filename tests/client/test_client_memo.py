"""Kinds of questions on a device: memos of values that persist, key-value pairs, and sets of items."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.client.store import StoredState
from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.memoised import Memoised
from hubbub.protocols.ask import CIRCLE, Arc
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import decode_upload
from tests.client.device import HOME, MEMO, MIXED, PAGE, World, answers, seeded, store_of
from tests.client.real_collector import OpenCollector
from tests.shared.small_collections import collection_text, first_ask

LARGE = MEMO.replace("size = 6", "size = 5000").replace("user = 7.0", "user = 100.0")


def memo_mechanism(here: World) -> Memoised:
    _, mechanism = first_ask(here.collection, "page")
    assert isinstance(mechanism, Memoised)
    return mechanism


def reports_of(here: World, last: int) -> list[Reports]:
    _, mechanism = first_ask(here.collection, "page")
    reports = [report for reports in list(here.server.reports.values())[-last:] for report in reports.values()]
    return [mechanism.read_bare(report) for report in reports]


def likelihoods(mechanism: hb.BasicRappor, memos: dict[int, bytes], reports: list[Reports]) -> dict[int, float]:
    """How likely the reports are from each permanent answer."""
    keep, lift = (t / (1 << mechanism.width) for t in (mechanism.keep, mechanism.lift))
    bits = np.unpackbits(np.concatenate([r.private["bits"] for r in reports]), axis=1, bitorder="little")
    likelihood = {}
    for key, answer in memos.items():
        own = np.unpackbits(np.frombuffer(answer, np.uint8), bitorder="little")
        rates = np.where(own == 1, keep, lift)[: mechanism.size]
        reported = bits[:, : mechanism.size]
        likelihood[key] = float(np.log(np.where(reported == 1, rates, 1 - rates)).sum())
    return likelihood


def test_each_new_value_costs_the_permanent_epsilon_and_repeats_cost_nothing(folder: Path) -> None:
    here = World(folder, MEMO)
    cost = memo_mechanism(here).permanent_event().spent
    with here.device() as client:
        paid = []
        for step, home in enumerate([3, 3, 3, 1, 3, 1, 1, 5, 3, 5], start=5):
            assert here.live(client, step, home=home) == 1
            paid.append(client.status().spent)
        assert paid == [cost * k for k in (1, 1, 1, 2, 2, 2, 2, 3, 3, 3)]
        assert client.status().memos == {"page": 3}
        assert client.status().counts == {"sent": 10}
    assert here.server.tally == {"accepted": 10}


def test_the_value_stays_until_another_is_recorded(folder: Path) -> None:
    here = World(folder, MEMO)
    with here.device() as client:
        here.live(client, 5, home=4)
        for step in range(6, 9):
            assert here.live(client, step) == 1
        assert answers(client).keys() == {4}


def test_a_device_that_recorded_nothing_answers_too(folder: Path) -> None:
    here = World(folder, MEMO)
    with here.device() as client:
        assert here.live(client, 5) == 1
        assert answers(client).keys() == {6}  # "(none)"


def test_when_the_budget_is_gone_it_goes_on_from_the_last_memo(folder: Path) -> None:
    here = World(folder, MEMO)
    mechanism = memo_mechanism(here)
    assert isinstance(mechanism, hb.BasicRappor)
    cost = mechanism.permanent_event().spent
    with here.device(rng=seeded(5)) as client:
        for step, home in enumerate([0, 1, 2, 0, 1], start=5):  # three values: 6 of 7
            here.live(client, step, home=home)
        memos = answers(client)
        for step in range(10, 130):
            assert here.live(client, step, home=4) == 1  # never silent
        assert client.status().spent == 3 * cost
        assert answers(client) == memos
        # 120 reports of 7 bits tell the three answers apart; from which they were made is the last used, that of 1.
        likely = likelihoods(mechanism, memos, reports_of(here, 120))
        assert max(likely, key=lambda key: likely[key]) == 1
        assert sorted(likely.values())[-1] > sorted(likely.values())[-2] + 10
        here.live(client, 130, home=0)  # a value that has a memo is answered from it again
        assert client.status().spent == 3 * cost


def test_memos_survive_restarts(folder: Path) -> None:
    here = World(folder, MEMO)
    memos: list[dict[int, bytes]] = []
    for step in range(5, 12):
        with here.device() as client:
            here.live(client, step, home=step % 2)
            memos.append(answers(client))
    assert memos[1] == memos[-1]
    assert memos[0] == {1: memos[-1][1]}


def test_a_large_domain_costs_at_most_g_epsilon_whatever_its_values_do(folder: Path) -> None:
    here = World(folder, LARGE)
    mechanism = memo_mechanism(here)
    assert isinstance(mechanism, hb.Loloha)
    rng = seeded(2)
    with here.device() as client:
        for step in range(5, 65):
            assert here.live(client, step, home=int(rng.below(5000, 1)[0])) == 1
        status = client.status()
        assert status.memos == {"page": mechanism.buckets}  # 60 values of 5000 meet all four buckets, but once in 10^7
        assert status.spent == mechanism.buckets * mechanism.permanent_event().spent
        assert status.spent <= mechanism.buckets * 2 * UNITS_PER_EPSILON
    functions = {int(report.public["function"][0]) for report in reports_of(here, 60)}
    assert len(functions) == 1  # one hash function for life


def test_one_report_a_step_whatever_is_asked(folder: Path) -> None:
    here = World(folder, MEMO)
    with here.at(5) as client:
        _, ask = here.server.open["page"]
        for start in range(6):
            here.publish(("page", replace(ask, cohort=Arc(start, CIRCLE))), seconds=100)
            client.tick()
            here.clock.advance(200)
        assert client.status().queued == 1


def test_changes_do_not_silence_other_questions(folder: Path) -> None:
    """Two devices, one whose values change: the histogram's account is the same on both."""
    answered = []
    for number, homes in enumerate([[3] * 30, list(range(6)) * 5]):
        here = World(folder, MIXED)
        with here.device(str(number)) as client:
            for step, home in enumerate(homes, start=5):
                here.live(client, step, home=home)
            assert client.status().spent <= 12 * UNITS_PER_EPSILON
        names = [entry.name for body in here.server.bodies for entry in decode_upload(body).entries]
        answered.append(sorted((name.step, name.question) for name in names))
    assert answered[0] == answered[1]
    assert answered[0][:2] == [(5, "page"), (5, "popular")]
    # The histogram has spent its part; the memo goes on.
    assert [question for step, question in answered[0] if step == 34] == ["page"]


def test_two_fields_alike_have_memos_of_their_own(folder: Path) -> None:
    fields, pages = {"home": HOME, "work": HOME}, {"page": PAGE, "desk": {**PAGE, "field": "work"}}
    here = World(folder, collection_text(privacy={"user": 20.0, "minimum_batch": 20}, fields=fields, questions=pages))
    with here.device() as client:
        here.live(client, 5, home=3, work=3)
        assert client.status().memos == {"page": 1, "desk": 1}
        # One permanent answer for both would tell that they are equal.
        assert client.status().spent == 2 * memo_mechanism(here).permanent_event().spent


@pytest.mark.parametrize("damaged", [b"", b"\xc1", b"\x93\x01", b"\x80"], ids=["empty", "no bytes", "cut off", "none"])
def test_a_state_that_cannot_be_read_is_refused_and_the_rest_is_told_and_answered(folder: Path, damaged: bytes) -> None:
    here = World(folder, MIXED)
    with here.device() as client:
        assert here.live(client, 8, home=3) == 2
        spent = client.status().spent
        account, store = here.collection.terms["page"].account, store_of(client)
        with store.transaction():
            store.set_state(account, store.stream(account) or "", StoredState(damaged or b"\x00"))
        assert "page" not in client.status().memos
        assert here.live(client, 9, home=3) == 1
        assert client.status().counts["refused: state"] == 1
        assert client.status().spent - spent < UNITS_PER_EPSILON, "only the other question was paid for"


KEYS = ["alien", "brazil", "casablanca", "dune", "eraserhead"]
TEXT = collection_text(
    privacy={"event": 24.0, "minimum_batch": 20},
    fields={"ratings": {"kind": "keyvalue", "keys": KEYS, "low": 1, "high": 5, "most": 2}},
    questions={
        "mean": {"kind": "keyvalue", "field": "ratings", "epsilon": 8.0},
        "seen": {"kind": "keyvalue", "field": "ratings", "of": "frequency", "epsilon": 8.0, "mechanism": "Collision"},
        "liked": {"kind": "keyvalue", "field": "ratings", "of": "conditional", "epsilon": 8.0, "mechanism": "CoCo"},
    },
)
PEOPLE: list[dict[str, float]] = [{"alien": 5, "brazil": 2.5}, {"alien": 4}, {"brazil": 1.5, "casablanca": 3}, {}]


def test_what_devices_record_is_released_in_the_field_s_own_unit(collect: OpenCollector) -> None:
    here = collect(TEXT)
    collection, server = here.collection, here.server
    for number in range(8):
        client = here.device(number, rng=seeded(number))
        client.record("ratings", PEOPLE[number % 4])
        assert client.tick() == client.upload() == 3
    rng = seeded("many")
    # And 3,992 more, in one batch.
    for window in server.collector.board.open(collection.collection_id, here.clock.now()):
        ask = window.ask
        codes = [collection.encode("ratings", person) for person in PEOPLE] * 998
        assert isinstance(ask.mechanism, Mechanism)
        reports = ask.mechanism.randomize(ask.view(codes), rng)
        name = AnswerName(window.question, 0, ask.step, 1, 0)
        body = encode_batch(collection.name, collection.version, name, rng.bytes(16 * 3992), reports)
        server.request("POST", "/v1/reports", {"Content-Type": BATCH_TYPE}, body)
    here.go(8, collection.lateness_seconds + 1)
    truth: dict[str, list[float | None]] = {
        "mean": [9 / 4, 4 / 4, 3 / 4, 0.0, 0.0],
        "seen": [0.5, 0.5, 0.25, 0.0, 0.0],
        "liked": [4.5, 2.0, 3.0, None, None],
    }
    for question, values in truth.items():
        (estimate,) = here.released(question)
        assert estimate["n"] == 4000
        assert estimate["labels"] == KEYS
        assert estimate["kind"] == ("share" if question == "seen" else "quantity")
        for value, estimated, variance in zip(values, estimate["value"], estimate["variance"], strict=True):
            if value is None:  # nobody holds the key: nothing is known of its mean (an error of 5 % a key, here not)
                assert estimated is variance is None
            else:  # fails by chance once in 15,000 times a number
                assert abs(estimated - value) < 4 * np.sqrt(variance) < 0.6


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"alien": 1, "brazil": 2, "dune": 3}, "ratings: got '3 keys'; allowed: at most 2 keys"),
        ({"alien": float("nan")}, "ratings: got {'alien': nan}; allowed: a finite number for every key"),
        ({"alien": float("inf")}, "a finite number for every key"),
        ({"alien": True}, "a finite number for every key"),
        ({"alien": "5"}, "a finite number for every key"),
        ({"zulu": 3}, "ratings: got 'zulu'; allowed: keys such as alien, brazil"),
        ({7: 3}, "ratings: got 7; allowed: keys such as"),
        ([("alien", 3), ("alien", 4)], "ratings: got 'alien'; allowed: keys that differ from each other"),
        ([("alien", 3, 4)], "a mapping of keys to numbers, or pairs of them"),
        ("alien", "a mapping of keys to numbers, or pairs of them"),
        (3.0, "a mapping of keys to numbers, or pairs of them"),
        (None, "a mapping of keys to numbers, or pairs of them"),
    ],
    ids=str,
)
def test_what_nobody_can_hold_is_refused_by_record_and_costs_nothing(folder: Path, value: Any, message: str) -> None:
    here = World(folder, TEXT)
    with here.at(7) as client:
        with pytest.raises(InvalidValue) as caught:
            client.record("ratings", value)
        assert message in str(caught.value)
        assert client.status().spent == 0
        assert client.tick() == 3  # as one who holds nothing
        assert client.status().spent == here.collection.budget.event


def test_numbers_outside_the_range_are_moved_to_its_end_and_survive_the_folder(folder: Path) -> None:
    here = World(folder, TEXT)
    with here.at(7) as client:
        client.record("ratings", {"dune": 99, "alien": -3})
    with here.device() as client:
        with store_of(client).transaction():
            assert store_of(client).recorded("ratings") == (here.clock.now(), ((0, -3.0), (3, 99.0)))
        assert client.tick() == 3
    for question, ask in here.server.open.values():
        assert ask.view([((0, -3.0), (3, 99.0))]) == [{0: -1.0, 3: 1.0}], question


DEVICES, ROUND, DAY = 40, 3600, 86_400
ITEMSETS = collection_text(
    schedule={"step": "1h", "lateness": "1m"},
    privacy={"user": 25.0, "minimum_batch": 2},
    override={"epsilon_above_8": "forty devices", "minimum_batch_below_20": "forty devices"},
    fields={
        "features": {
            "kind": "sets",
            "most": 5,
            "items": {"kind": "categorical", "names": ["bold", "table", "link", "image", "undo"]},
        }
    },
    questions={
        "together": {
            "kind": "itemsets",
            "field": "features",
            "epsilon": 20.0,
            "k": 4,
            "start": "1970-01-02T00:00Z",
            "round": "1h",
        }
    },
)


def test_each_device_answers_once_and_what_they_hold_is_found(collect: OpenCollector) -> None:
    here = collect(ITEMSETS, step=DAY // ROUND - 1)
    forms = ("msgpack", "json")
    devices = [here.device(number, rng=seeded(number), form=forms[number % 2]) for number in range(DEVICES)]
    for number, client in enumerate(devices):
        client.record("features", {"bold", "undo"} if number % 3 else {"link"})
    answered = [0] * DEVICES
    for step in range(DAY // ROUND, DAY // ROUND + 4):
        here.go(step, ROUND / 2)
        for number, client in enumerate(devices):
            answered[number] += client.tick()
            client.upload()
        here.go(step + 1, 70)
    assert answered == [1] * DEVICES
    (told,) = here.released("together")
    assert {"bold", "undo", "bold + undo"} <= set(told["labels"][:3])
    assert "stopped" not in told
    for client in devices:
        assert client.status().spent == 20 * 10**12
        assert set(client.status().counts) == {"sent"}
