"""A hostile server: whatever it sends, the budget is not exceeded, and nothing is revealed."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.client import Client
from hubbub.client.answer import admit, admit_round
from hubbub.client.documents import ClientRefusal, PublishedAsk
from hubbub.collection import Keys, ManualClock, seal
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.protocols.ask import CIRCLE, Arc, Ask, place_on_circle
from hubbub.protocols.views.basic import Binned, Clipped
from tests.client.device import begin, device
from tests.client.local_server import KEYS, TEXT, LocalServer, survey

ASKS = "/v1/collections/survey/asks"
COLLECTION = "/v1/collections/survey"
TABLE = """
[fields.crashed]
kind = "categorical"
names = ["no", "yes"]

[questions.people]
kind = "table"
columns = ["theme", "crashed"]
epsilon = 1.0
"""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server() -> LocalServer:
    return LocalServer(survey())


def popular(server: LocalServer) -> Ask:
    return server.open["popular"][1]


def spent(client: Client) -> int:
    return client.status().spent


def refused(client: Client) -> dict[str, int]:
    counts = client.status().counts
    return {name.removeprefix("refused: "): count for name, count in counts.items() if name.startswith("refused: ")}


@pytest.mark.parametrize(
    ("forge", "reason"),
    [
        (lambda spec: json.dumps(spec).encode(), "signature"),
        (lambda spec: seal(spec, b"j" * 32), "signature"),
        (lambda spec: {**seal(spec, b"j" * 32), "key": KEYS.public.hex()}, "signature"),
        (lambda spec: {**seal(spec, KEYS.private), "payload": json.dumps(spec)}, "signature"),
        (lambda spec: b"", "signature"),
        (lambda spec: b"[" * 100_000, "signature"),
        (lambda spec: b"\xff\xfe", "signature"),
        (lambda spec: seal({"format": 1, "step": 5}, KEYS.private), "document"),
        (lambda spec: seal([], KEYS.private), "document"),
        (lambda spec: seal("asks", KEYS.private), "document"),
    ],
    ids=["bare", "other key", "other key's name", "other spelling", "empty", "deep", "no text", "less", "list", "text"],
)
@pytest.mark.parametrize("path", [ASKS, COLLECTION], ids=["asks", "collection"])
def test_documents_that_are_not_signed_or_not_whole_are_refused(
    folder: Path, clock: ManualClock, server: LocalServer, forge: Any, reason: str, path: str
) -> None:
    begin(server, clock, 5)
    if path == ASKS:
        device(folder, server, clock).tick()
        begin(server, clock, 6)
    honest = server.documents[path]
    server.documents[path] = forge(json.loads(honest["payload"]))
    with device(folder, server, clock) as client:
        assert client.tick() == 0
        server.documents[path] = honest
        clock.advance(60)
        assert client.tick() == 1
        assert refused(client) == {reason: 1}


def test_a_document_longer_than_any_is_not_read(folder: Path, clock: ManualClock, server: LocalServer) -> None:
    from hubbub.client import HttpTransport
    from tests.client.local_server import Listening

    begin(server, clock, 5)
    honest = server.documents[COLLECTION]
    server.documents[COLLECTION] = b"9" * (9 << 20)
    with Listening(server) as url, device(folder, HttpTransport(url, timeout=120), clock) as client:  # nine megabytes
        assert client.tick() == 0
        assert "longer than" in str(client._current.trouble)
        server.documents[COLLECTION] = honest
        clock.advance(60)
        assert client.tick() == 1


def test_asks_for_more_than_the_budget_are_not_answered(folder: Path, clock: ManualClock, server: LocalServer) -> None:
    with device(folder, server, clock) as client:
        for step in range(5, 60):
            begin(server, clock, step)
            client.tick()
            assert spent(client) <= 20 * UNITS_PER_EPSILON
        assert spent(client) == 20 * UNITS_PER_EPSILON  # twenty steps of 1
        assert refused(client) == {"budget": 35}


@pytest.mark.parametrize("epsilon", [0.3, 0.7, 1.0 + 1e-9, 4.0, 8.0])
def test_any_epsilon_any_number_of_asks_the_budget_of_a_step_holds(
    folder: Path, clock: ManualClock, server: LocalServer, epsilon: float
) -> None:
    with device(folder, server, clock) as client:
        for step in (5, 6):
            begin(server, clock, step)
            mechanism = hb.GRR(epsilon=epsilon, domain=3)
            asks = [
                ("popular", replace(popular(server), mechanism=mechanism, cohort=Arc(start, CIRCLE)))
                for start in range(9)
            ]
            server.publish_asks(asks, step, server.collection.closes(step))
            client.tick()
            status = client.status()
            assert status.event is not None
            assert status.event.spent <= UNITS_PER_EPSILON
            assert status.queued <= 2 * (step - 4)  # of nine asks, no more than a step has phases are looked at


ODD: dict[str, tuple[str, Any]] = {
    "a smaller domain": ("mechanism", lambda ask: replace(ask, mechanism=hb.GRR(epsilon=1.0, domain=2))),
    "a larger domain": ("mechanism", lambda ask: replace(ask, mechanism=hb.GRR(epsilon=1.0, domain=300))),
    "another mechanism": ("mechanism", lambda ask: replace(ask, mechanism=hb.OUE(epsilon=1.0, domain=3))),
    "a memo": ("mechanism", lambda ask: replace(ask, mechanism=hb.BasicRappor(epsilon=1.0, domain=3))),
    "words": ("mechanism", lambda ask: replace(ask, mechanism=hb.Rappor(epsilon=1.0, domain=hb.Strings(9)))),
    "no epsilon to speak of": ("mechanism", lambda ask: replace(ask, mechanism=hb.GRR(epsilon=1e-12, domain=3))),
    "a view that tells 0 from 1 and fails at 2": ("view", lambda ask: replace(ask, view=Clipped(0.0, 1.0))),
    "cells": ("view", lambda ask: replace(ask, view=Binned(first=1.0, factor=2.0, cells=3))),
    "one place": ("arc", lambda ask: replace(ask, cohort=Arc(7, 1))),
    "nobody": ("arc", lambda ask: replace(ask, cohort=Arc(7, 0))),
    "a tiny arc": ("arc", lambda ask: replace(ask, cohort=Arc(7, CIRCLE // 1000 - 1))),
    "the step before": ("step", lambda ask: replace(ask, step=4)),
    "the step after": ("step", lambda ask: replace(ask, step=6)),
    "a step in ten years": ("step", lambda ask: replace(ask, step=87605)),
}


@pytest.mark.parametrize("name", ODD)
def test_asks_that_the_question_would_not_make_are_refused(
    folder: Path, clock: ManualClock, server: LocalServer, name: str
) -> None:
    reason, change = ODD[name]
    begin(server, clock, 5)
    server.publish_asks([("popular", change(popular(server)))], 5, server.collection.closes(5))
    for number, value in enumerate([None, "light", "dark"]):
        with device(folder / str(number), server, clock) as client:
            if value is not None:
                client.record("theme", value)
            assert client.tick() == 0
            assert spent(client) == 0
            assert refused(client) == {reason: 1}  # the same for every value: silence tells nothing


NONSENSE: dict[str, dict[str, Any]] = {
    "no list": {"asks": 7},
    "no ask": {"asks": [{"question": "popular"}]},
    "an empty ask": {"asks": [{"question": "popular", "ask": {}}]},
    "five thousand asks": {"asks": [{"question": "popular", "ask": None}] * 5000},
    "no step": {"step": "x"},
    "no end": {"closes": None},
    "more": {"more": 1},
}


@pytest.mark.parametrize("name", NONSENSE)
def test_signed_nonsense_is_refused(folder: Path, clock: ManualClock, server: LocalServer, name: str) -> None:
    begin(server, clock, 5)
    server.publish_asks([("popular", popular(server))], 5, server.collection.closes(5), NONSENSE[name])
    with device(folder, server, clock) as client:
        assert client.tick() == 0
        assert refused(client) == {"document": 1}


def test_other_questions_and_other_documents_steps(folder: Path, clock: ManualClock, server: LocalServer) -> None:
    begin(server, clock, 5)
    ask = popular(server)
    with device(folder, server, clock) as client:
        for question, step, closes in (("secret", 5, 9e12), ("popular", 4, 9e12), ("popular", 6, 9e12)):
            server.publish_asks([(question, ask)], step, closes)
            clock.advance(300)
            assert client.tick() == 0
        assert spent(client) == 0
        assert refused(client) == {"question": 1}


def test_another_collection_of_the_same_key_is_refused(folder: Path, clock: ManualClock, server: LocalServer) -> None:
    begin(server, clock, 5)
    honest = server.documents[COLLECTION]
    other = survey(TEXT.replace('name = "survey"', 'name = "other"'))
    server.documents[COLLECTION] = seal(other.spec(), KEYS.private)
    with device(folder, server, clock) as client:
        assert client.tick() == 0
        server.documents[COLLECTION] = honest
        clock.advance(60)
        assert client.tick() == 1
        assert refused(client) == {"collection": 1}


@pytest.mark.parametrize("change", [{"version": 2}, {"collection": "other"}], ids=["version", "collection"])
def test_asks_of_another_version_are_not_answered(
    folder: Path, clock: ManualClock, server: LocalServer, change: dict[str, Any]
) -> None:
    """They are signed and of this step, but not of what is in force: what they name may mean something else there."""
    begin(server, clock, 5)
    honest = server.documents[ASKS]
    server.documents[ASKS] = seal({**json.loads(honest["payload"]), **change}, KEYS.private)
    with device(folder, server, clock) as client:
        assert client.tick() == 0
        assert spent(client) == 0
        server.documents[ASKS] = honest
        clock.advance(600)
        assert client.tick() == 1


def test_an_ask_of_another_step_and_two_parts_of_one_number_are_refused() -> None:
    """Whatever the ledger and the names of answers would refuse later."""
    collection = survey(TEXT.partition("[questions")[0] + TABLE)
    parts = [
        PublishedAsk("people", replace(ask, step=5), part=number)
        for number, ask in enumerate(next(collection.protocol("people")))
    ]
    admit_round(collection, parts, 5)
    with pytest.raises(ClientRefusal, match="step: 5 is not 6"):
        admit_round(collection, parts, 6)
    with pytest.raises(ClientRefusal, match="parts"):
        admit_round(collection, [part._replace(part=0) for part in parts], 5)


def test_a_document_that_never_closes_does_not_outlive_its_step(
    folder: Path, clock: ManualClock, server: LocalServer
) -> None:
    begin(server, clock, 5)
    server.publish_asks([("popular", popular(server))], 5, 9e12)
    with device(folder, server, clock) as client:
        assert client.tick() == 1
        begin(server, clock, 6)
        assert client.tick() == 1


def test_only_devices_on_the_arc_answer(folder: Path, clock: ManualClock, server: LocalServer) -> None:
    begin(server, clock, 5)
    quarter = replace(popular(server), cohort=Arc(CIRCLE // 2, CIRCLE // 4))
    server.publish_asks([("popular", quarter)], 5, server.collection.closes(5))
    answered = 0
    for number in range(40):
        with device(folder / str(number), server, clock) as client:
            place = place_on_circle(client._store.device_key, server.collection.name)
            reports = client.tick()
            assert reports == int(quarter.cohort.holds(np.array([place]))[0])
            answered += reports
    assert 0 < answered < 40


def test_an_older_version_is_refused_and_so_is_a_changed_one(folder: Path, clock: ManualClock) -> None:
    second = survey(version="2")
    server = LocalServer(second)
    begin(server, clock, 5)
    with device(folder, server, clock) as client:
        assert client.tick() == 1
        for offered in (survey(version="1"), survey(version="2", event="8.0", epsilon="8.0")):
            server.publish_collection(offered)
            server.publish_asks([], 6, 9e12, {"version": 3})
            clock.advance(3600)
            assert client.tick() == 0
            assert client.status().version == 2
        assert refused(client) == {"version": 2}
        server.publish_collection(survey(TEXT.replace('"survey"', '"another"')))
        server.documents[COLLECTION] = server.documents["/v1/collections/another"]
        clock.advance(3600)
        client.tick()
        assert refused(client) == {"version": 2, "collection": 1}


def test_an_unsafe_collection_is_refused(folder: Path, clock: ManualClock) -> None:
    from hubbub.authoring.toml import read_collection

    unsafe = read_collection(TEXT.replace("epsilon = 1.0", "epsilon = 90.0").replace("event = 1.0", "event = 90.0"))
    server = LocalServer(survey())
    server.publish_collection(unsafe)
    with device(folder, server, clock) as client:
        assert client.tick() == 0
        assert "document" in str(client._current.trouble)


def test_a_new_key_is_trusted_beside_the_old_and_then_alone(folder: Path, clock: ManualClock) -> None:
    server, new = LocalServer(survey()), Keys(b"n" * 32)
    begin(server, clock, 5)
    with device(folder, server, clock) as client:
        assert client.tick() == 1
    options = {"clock": clock, "monotonic": clock.now, "jitter": 0.0}
    with Client(folder, server, [KEYS.public, new.public], **options) as client:
        assert client.status().spent == UNITS_PER_EPSILON
    with Client(folder, server, new.public, **options) as client:
        assert client.tick() == 0  # nothing that is signed by the old key counts
        server.keys = new
        server.publish_collection(server.collection)
        begin(server, clock, 6)
        assert client.tick() == 1
        assert client.status().spent == 2 * UNITS_PER_EPSILON  # the account went on


def test_every_honest_ask_is_admitted() -> None:
    for collection in (survey(), survey(epsilon="0.3")):
        for question in collection.questions:
            ask = next(collection.protocol(question))
            assert isinstance(ask, Ask)
            admit(collection, PublishedAsk(question, replace(ask, step=9)), 9)
            with pytest.raises(ClientRefusal):
                admit(collection, PublishedAsk(question, replace(ask, step=9, cohort=Arc(0, 5))), 9)
            assert ask.cohort.share == 1.0


def test_an_ask_may_not_spend_more_than_its_question_promised(folder: Path, clock: ManualClock) -> None:
    """The budget has room for 8: the question's own promise of 1 holds."""
    server = LocalServer(survey(event="8.0", user="80.0"))
    begin(server, clock, 5)
    with device(folder, server, clock) as client:
        for epsilon in (2.0, 1.0 + 1e-12, 0.5, 1.0 - 1e-12):  # and no epsilon of its own tags a device
            ask = replace(popular(server), mechanism=hb.GRR(epsilon=epsilon, domain=3))
            server.publish_asks([("popular", ask)], 5, clock.now() + 1)
            assert client.tick() == 0
            clock.advance(300)
        assert spent(client) == 0
        server.publish_asks([("popular", popular(server))], 5, 9e12)
        assert client.tick() == 1


def test_a_name_has_one_answer_whatever_claims_it(folder: Path, clock: ManualClock) -> None:
    text = TEXT.replace('kind = "histogram"', 'kind = "stream"\nmethod = "LBD"\nw = 4')
    server = LocalServer(survey(text, event="8.0", user="80.0"))
    begin(server, clock, 5)
    terms = server.collection.terms["popular"]
    statistic = server.collection.questions["popular"].statistic(server.collection.setting("popular"))
    several = {statistic.mechanism(units).spec_id: statistic.mechanism(units) for units in range(10**11, 10**12, 10**9)}
    allowed = [mechanism for spec_id, mechanism in several.items() if spec_id in terms.mechanisms]
    with device(folder, server, clock) as client:
        for mechanism in allowed[:3]:
            ask = replace(popular(server), mechanism=mechanism)
            server.publish_asks([("popular", ask)], 5, clock.now() + 1)
            client.tick()
            clock.advance(300)
        assert len(allowed) > 1
        assert client.status().queued == 1
        server.rounds["popular"] = 2
        server.publish_asks([("popular", popular(server))], 5, clock.now() + 1)
        client.tick()
        assert client.status().queued <= 2
        for number in (0, 3, 7):
            before = refused(client).get("round", 0)
            server.rounds["popular"] = number
            ask = popular(server)
            name = {"question": "popular", "run": 0, "step": ask.step, "round": number, "part": 0}
            spec = {**name, "closes": 0.0, "ask": ask.spec()}
            server.publish_asks([], 5, clock.now() + 1, {"asks": [spec]})
            clock.advance(300)
            client.tick()
            assert refused(client).get("round", 0) == before + 1


def test_a_question_promised_once_in_seven_days_is_answered_once_in_seven_days(
    folder: Path, clock: ManualClock
) -> None:
    week = TEXT.replace('kind = "histogram"', 'kind = "stream"\nmethod = "LPU"\nw = 168')
    server = LocalServer(survey(week, event="8.0", user="800.0"))
    mechanism = server.collection.questions["popular"].mechanism_for(server.collection.setting("popular"))
    with device(folder, server, clock) as client:
        answered = []
        for step in range(5, 5 + 2 * 168, 7):
            clock.set(server.collection.opens(step) + 1.0)
            ask = Ask(mechanism=mechanism, step=step, cohort=Arc(0, CIRCLE))  # everyone is asked, every time
            server.publish_asks([("popular", ask)], step, 9e12)
            if client.tick():
                answered.append(step)
        assert answered == [5, 5 + 168]


def test_a_refusal_survives_pickling() -> None:
    refusal = pickle.loads(pickle.dumps(ClientRefusal("arc", "not what popular asks")))
    assert (refusal.reason, str(refusal)) == ("arc", "arc: not what popular asks")
