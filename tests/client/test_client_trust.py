"""A hostile server: whatever it sends, the budget is not exceeded, and nothing is revealed."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.client import Client, HttpTransport, NotReady
from hubbub.client.answer import admit, admit_round
from hubbub.client.documents import ClientRefusal, PublishedAsk
from hubbub.collection import Keys, seal
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.protocols.ask import CIRCLE, Arc, Ask, place_on_circle
from hubbub.protocols.views.basic import Binned, Clipped
from hubbub.questions import StatisticQuestion
from tests.client.device import World, device, refused, store_of
from tests.client.local_server import KEYS, TEXT, Listening, survey
from tests.shared.small_collections import first_ask

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
def here(folder: Path) -> World:
    """A server at step 5."""
    world = World(folder)
    world.begin(5)
    return world


def popular(here: World) -> Ask:
    return here.server.open["popular"][1]


def spent(client: Client) -> int:
    return client.status().spent


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
def test_documents_that_are_not_signed_or_not_whole_are_refused(here: World, forge: Any, reason: str, path: str):
    if path == ASKS:
        here.device().tick()
        here.begin(6)
    honest = here.server.documents[path]
    here.server.documents[path] = forge(json.loads(honest["payload"]))
    with here.device() as client:
        assert client.tick() == 0
        here.server.documents[path] = honest
        here.clock.advance(60)
        assert client.tick() == 1
        assert refused(client) == {reason: 1}


def test_a_document_longer_than_any_is_not_read(here: World) -> None:
    honest = here.server.documents[COLLECTION]
    here.server.documents[COLLECTION] = b"9" * (9 << 20)  # nine megabytes
    with Listening(here.server) as url, device(here.folder, HttpTransport(url, timeout=120), here.clock) as client:
        assert client.tick() == 0
        with pytest.raises(NotReady, match="longer than"):
            client.status()
        here.server.documents[COLLECTION] = honest
        here.clock.advance(60)
        assert client.tick() == 1


def test_asks_for_more_than_the_budget_are_not_answered(here: World) -> None:
    with here.device() as client:
        for step in range(5, 60):
            here.begin(step)
            client.tick()
            assert spent(client) <= 20 * UNITS_PER_EPSILON
        assert spent(client) == 20 * UNITS_PER_EPSILON  # twenty steps of 1
        assert refused(client) == {"budget": 35}


@pytest.mark.parametrize("epsilon", [0.3, 0.7, 1.0 + 1e-9, 4.0, 8.0])
def test_any_epsilon_any_number_of_asks_the_budget_of_a_step_holds(here: World, epsilon: float) -> None:
    with here.device() as client:
        for step in (5, 6):
            here.begin(step)
            ask = replace(popular(here), mechanism=hb.GRR(epsilon=epsilon, domain=3))
            asks = [("popular", replace(ask, cohort=Arc(start, CIRCLE))) for start in range(9)]
            here.publish(*asks, seconds=3599)
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


@pytest.mark.parametrize(("reason", "change"), ODD.values(), ids=ODD)
def test_asks_that_the_question_would_not_make_are_refused(here: World, reason: str, change: Any) -> None:
    here.publish(("popular", change(popular(here))), seconds=3599)
    for number, value in enumerate([None, "light", "dark"]):
        with here.device(str(number)) as client:
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


@pytest.mark.parametrize("changes", NONSENSE.values(), ids=NONSENSE)
def test_signed_nonsense_is_refused(here: World, changes: dict[str, Any]) -> None:
    here.publish(("popular", popular(here)), seconds=3599, **changes)
    with here.device() as client:
        assert client.tick() == 0
        assert refused(client) == {"document": 1}


def test_other_questions_and_other_documents_steps(here: World) -> None:
    ask = popular(here)
    with here.device() as client:
        for question, step in (("secret", 5), ("popular", 4), ("popular", 6)):
            here.server.publish_asks([(question, ask)], step, 9e12)
            here.clock.advance(300)
            assert client.tick() == 0
        assert spent(client) == 0
        assert refused(client) == {"question": 1}


def test_another_collection_of_the_same_key_is_refused(here: World) -> None:
    honest = here.server.documents[COLLECTION]
    here.server.documents[COLLECTION] = seal(survey(name='"other"').spec(), KEYS.private)
    with here.device() as client:
        assert client.tick() == 0
        here.server.documents[COLLECTION] = honest
        here.clock.advance(60)
        assert client.tick() == 1
        assert refused(client) == {"collection": 1}


@pytest.mark.parametrize("change", [{"version": 2}, {"collection": "other"}], ids=["version", "collection"])
def test_asks_of_another_version_are_not_answered(here: World, change: dict[str, Any]) -> None:
    """They are signed and of this step, but not of what is in force: what they name may mean something else there."""
    honest = here.server.documents[ASKS]
    here.server.documents[ASKS] = seal({**json.loads(honest["payload"]), **change}, KEYS.private)
    with here.device() as client:
        assert client.tick() == 0
        assert spent(client) == 0
        here.server.documents[ASKS] = honest
        here.clock.advance(600)
        assert client.tick() == 1


def test_an_ask_of_another_step_and_two_parts_of_one_number_are_refused() -> None:
    """Whatever the ledger and the names of answers would refuse later."""
    collection = survey(TEXT.partition("[questions")[0] + TABLE)
    asks = next(collection.protocol("people"))
    assert isinstance(asks, list)
    parts = [PublishedAsk("people", replace(ask, step=5), part=number) for number, ask in enumerate(asks)]
    admit_round(collection, parts, 5)
    with pytest.raises(ClientRefusal, match="step: 5 is not 6"):
        admit_round(collection, parts, 6)
    with pytest.raises(ClientRefusal, match="parts"):
        admit_round(collection, [part._replace(part=0) for part in parts], 5)


def test_a_document_that_never_closes_does_not_outlive_its_step(here: World) -> None:
    here.publish(("popular", popular(here)), seconds=9e12)
    with here.device() as client:
        assert client.tick() == 1
        here.begin(6)
        assert client.tick() == 1


def test_only_devices_on_the_arc_answer(here: World) -> None:
    quarter = replace(popular(here), cohort=Arc(CIRCLE // 2, CIRCLE // 4))
    here.publish(("popular", quarter), seconds=3599)
    answered = 0
    for number in range(40):
        with here.device(str(number)) as client:
            place = place_on_circle(store_of(client).device_key, here.collection.name)
            reports = client.tick()
            assert reports == int(quarter.cohort.holds(np.array([place]))[0])
            answered += reports
    assert 0 < answered < 40


def test_an_older_version_is_refused_and_so_is_a_changed_one(folder: Path) -> None:
    here = World(folder, version="2")
    with here.at(5) as client:
        assert client.tick() == 1
        for offered in (survey(version="1"), survey(version="2", event="8.0", epsilon="8.0")):
            here.server.publish_collection(offered)
            here.server.publish_asks([], 6, 9e12, {"version": 3})
            here.clock.advance(3600)
            assert client.tick() == 0
            assert client.status().version == 2
        assert refused(client) == {"version": 2}
        here.server.documents[COLLECTION] = seal(survey(name='"another"').spec(), KEYS.private)
        here.clock.advance(3600)
        client.tick()
        assert refused(client) == {"version": 2, "collection": 1}


def test_an_unsafe_collection_is_refused(here: World) -> None:
    here.server.publish_collection(survey(epsilon="90.0", event="90.0"))
    with here.device() as client:
        assert client.tick() == 0
        with pytest.raises(NotReady, match="document"):
            client.status()


def test_a_new_key_is_trusted_next_to_the_old_and_then_alone(here: World) -> None:
    new = Keys(b"n" * 32)
    assert here.spend([5]) == 1

    def trusting(*keys: bytes) -> Client:
        return Client(here.folder, here.server, keys, clock=here.clock, monotonic=here.clock.now, jitter=0.0)

    with trusting(KEYS.public, new.public) as client:
        assert client.status().spent == UNITS_PER_EPSILON
    with trusting(new.public) as client:
        assert client.tick() == 0  # nothing that is signed by the old key counts
        here.server.keys = new
        here.server.publish_collection(here.collection)
        here.begin(6)
        assert client.tick() == 1
        assert client.status().spent == 2 * UNITS_PER_EPSILON  # the account went on


@pytest.mark.parametrize("epsilon", ["1.0", "0.3"])
def test_every_honest_ask_is_admitted(epsilon: str) -> None:
    collection = survey(epsilon=epsilon)
    ask, _ = first_ask(collection, "popular")
    assert ask.cohort.share == 1.0
    admit(collection, PublishedAsk("popular", replace(ask, step=9)), 9)
    with pytest.raises(ClientRefusal):
        admit(collection, PublishedAsk("popular", replace(ask, step=9, cohort=Arc(0, 5))), 9)


def test_an_ask_may_not_spend_more_than_its_question_promised(folder: Path) -> None:
    """The budget has room for 8: the question's own promise of 1 holds."""
    here = World(folder, event="8.0", user="80.0")
    with here.at(5) as client:
        for epsilon in (2.0, 1.0 + 1e-12, 0.5, 1.0 - 1e-12):  # and no epsilon of its own tags a device
            here.publish(("popular", replace(popular(here), mechanism=hb.GRR(epsilon=epsilon, domain=3))))
            assert client.tick() == 0
            here.clock.advance(300)
        assert spent(client) == 0
        here.publish(("popular", popular(here)), seconds=9e12)
        assert client.tick() == 1


def test_a_name_has_one_answer_whatever_claims_it(folder: Path) -> None:
    text = TEXT.replace('kind = "histogram"', 'kind = "stream"\nmethod = "LBD"\nw = 4')
    here = World(folder, text, event="8.0", user="80.0")
    here.begin(5)
    question = here.collection.questions["popular"]
    assert isinstance(question, StatisticQuestion)
    statistic = question.statistic()
    several = {mechanism.spec_id: mechanism for mechanism in map(statistic.mechanism, range(10**11, 10**12, 10**9))}
    allowed = [several[spec_id] for spec_id in here.collection.terms["popular"].mechanisms if spec_id in several]
    with here.device() as client:
        for mechanism in allowed[:3]:
            here.publish(("popular", replace(popular(here), mechanism=mechanism)))
            client.tick()
            here.clock.advance(300)
        assert len(allowed) > 1
        assert client.status().queued == 1
        here.server.rounds["popular"] = 2
        here.publish(("popular", popular(here)))
        client.tick()
        assert client.status().queued <= 2
        for number in (0, 3, 7):
            before = refused(client).get("round", 0)
            ask = popular(here)
            name = {"question": "popular", "run": 0, "step": ask.step, "round": number, "part": 0}
            here.publish(asks=[{**name, "closes": 0.0, "ask": ask.spec()}])
            here.clock.advance(300)
            client.tick()
            assert refused(client).get("round", 0) == before + 1


def test_a_question_promised_once_in_seven_days_is_answered_once_in_seven_days(folder: Path) -> None:
    week = TEXT.replace('kind = "histogram"', 'kind = "stream"\nmethod = "LPU"\nw = 168')
    here = World(folder, week, event="8.0", user="800.0")
    ask, _ = first_ask(here.collection, "popular")
    with here.device() as client:
        answered = []
        for step in range(5, 5 + 2 * 168, 7):
            here.clock.set(here.collection.opens(step) + 1.0)
            everyone = Ask(mechanism=ask.mechanism, step=step, cohort=Arc(0, CIRCLE))  # every time
            here.publish(("popular", everyone), seconds=9e12)
            if client.tick():
                answered.append(step)
        assert answered == [5, 5 + 168]


def test_a_refusal_survives_pickling() -> None:
    refusal = pickle.loads(pickle.dumps(ClientRefusal("arc", "not what popular asks")))
    assert (refusal.reason, str(refusal)) == ("arc", "arc: not what popular asks")
