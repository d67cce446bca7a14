"""A device's day: record, tick, upload; and what happens when the network fails."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import Client, NotReady, Unreachable, read_status
from hubbub.client.transport import Response
from hubbub.collection import ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.wire.upload import decode_upload, decode_upload_json
from tests.client.device import HOUR, begin, device, seeded
from tests.client.local_server import KEYS, TEXT, Listening, LocalServer, survey
from tests.served import wait_for
from tests.shared.small_collections import collection_text

FAR = collection_text(
    privacy={"window": {"epsilon": 60.0, "steps": 4}, "minimum_batch": 20},
    fields={"theme": {"kind": "categorical", "names": ["light", "dark", "blue", "green"]}},
    questions={"watched": {"kind": "stream", "field": "theme", "epsilon": 60.0, "method": "LBD", "w": 4}},
    override={"epsilon_above_8": "so that a report is the value"},
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def certain(**changes: str) -> LocalServer:
    """A server whose one question takes so much epsilon that a report is the value itself, but once in e^60."""
    text = TEXT + '\n[override]\nepsilon_above_8 = "so that a report is the value"\n'
    return LocalServer(survey(text, event="60.0", user="6000.0", epsilon="60.0", **changes))


def last_value(server: LocalServer) -> int:
    _, ask = server.open["popular"]
    (report,) = server.reports[ask.ask_id].values()
    return int(ask.mechanism.read_bare(report).private["value"][0])


def test_a_report_a_step_over_http(folder: Path, clock: ManualClock) -> None:
    server = certain()
    with Listening(server) as url, device(folder, url, clock) as client:
        for step in (5, 6, 9):
            begin(server, clock, step)
            client.record("theme", "dark")
            assert (client.tick(), client.upload(), last_value(server)) == (1, 1, 1)
            server.end()
        assert [release.n for release in server.releases["popular"]] == [1.0] * 3
    assert server.tally == {"accepted": 3}


def test_the_last_value_of_the_step_wins_and_missing_is_a_symbol(folder: Path, clock: ManualClock) -> None:
    server = certain()
    with device(folder, server, clock) as client:
        begin(server, clock, 5)
        client.record("theme", "light")
        client.record("theme", "dark")
        assert (client.tick(), client.tick(), client.upload(), last_value(server)) == (1, 0, 1, 1)
        begin(server, clock, 6)  # what was recorded in step 5 is not the value of step 6
        assert (client.tick(), client.upload(), last_value(server)) == (1, 1, 2)
        begin(server, clock, 7)
        client.record("theme", "light")
        assert (client.tick(), client.upload(), last_value(server)) == (1, 1, 0)


def test_waiting_lets_the_whole_step_be_recorded(folder: Path, clock: ManualClock) -> None:
    server = certain()
    with device(folder, server, clock) as client:
        begin(server, clock, 5)
        assert client.tick(wait=0.8) == 0
        clock.advance(0.7 * HOUR)
        client.record("theme", "dark")
        assert client.tick(wait=0.8) == 0
        clock.advance(0.2 * HOUR)
        assert (client.tick(wait=0.8), client.upload(), last_value(server)) == (1, 1, 1)


def test_both_asks_of_a_step_see_one_value(folder: Path, clock: ManualClock) -> None:
    server = LocalServer(survey(FAR))
    with device(folder, server, clock) as client:
        values = []
        begin(server, clock, 3)
        client.record("theme", "blue")
        for _ in range(2):
            if "watched" in server.open:
                assert client.tick() == 1
                _, ask = server.open["watched"]
                assert client.upload() == 1
                (report,) = server.reports[ask.ask_id].values()
                values.append(int(ask.mechanism.read_bare(report).private["value"][0]))
            client.record("theme", "green")
            clock.set(server.collection.opens(3) + HOUR / 2 + 1)
            server.half()
    assert values == [2, 2]


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [("theme", "purple", "theme: got 'purple'"), ("colour", "dark", "field: got 'colour'"), ("theme", 3, "theme")],
)
def test_what_is_not_a_value_is_refused_before_anything_is_sent(
    folder: Path, clock: ManualClock, field: str, value: Any, match: str
) -> None:
    server = certain()
    begin(server, clock, 5)
    with device(folder, server, clock) as client:
        with pytest.raises(InvalidValue, match=match):
            client.record(field, value)
        client.tick()
        client.upload()
        assert last_value(server) == 2


def test_without_a_server_nothing_is_recorded_and_nothing_breaks(folder: Path, clock: ManualClock) -> None:
    server = certain()
    server.faults = ["unreachable"] * 3
    with device(folder, server, clock) as client:
        with pytest.raises(NotReady, match="no route"):
            client.record("theme", "dark")
        with pytest.raises(NotReady):
            client.status()
        assert (client.tick(), client.upload()) == (0, 0)
        server.faults = []
        begin(server, clock, 5)
        clock.advance(100)
        assert (client.tick(), client.upload()) == (1, 1)


def test_frames_have_one_size_and_retries_send_the_same_bytes(folder: Path, clock: ManualClock) -> None:
    server = certain()
    begin(server, clock, 5)
    with device(folder, server, clock) as client:
        client.record("theme", "dark")
        client.tick()
        server.faults = ["lost answer", "500", "garbled answer", "429"]
        for _ in range(40):
            clock.advance(5)
            if client.upload():
                break
    # The bodies that were answered with a status were never read by the server.
    assert len(server.bodies) == 3
    assert len(set(server.bodies)) == 1
    assert len(server.bodies[0]) == server.collection.frame_bytes
    assert server.tally == {"accepted": 1, "duplicate": 2}
    assert len(decode_upload(server.bodies[0]).entries) == 1


def test_uploads_can_be_spelt_in_json(folder: Path, clock: ManualClock) -> None:
    server = certain()
    begin(server, clock, 5)
    with device(folder, server, clock, form="json") as client:
        client.tick()
        assert client.upload() == 1
    assert decode_upload_json(server.bodies[0]).entries
    assert len(server.bodies[0]) == 2 * server.collection.frame_bytes
    assert json.loads(server.bodies[0])["collection"] == server.collection.name


def test_after_a_failure_the_client_waits_longer_and_longer(folder: Path, clock: ManualClock) -> None:
    server = certain(lateness='"7d"')
    begin(server, clock, 5)
    with device(folder, server, clock, rng=seeded(3)) as client:
        client.tick()
        server.faults = ["500"] * 30
        times = []
        while server.faults:
            before = len(server.seen)
            client.upload()
            if len(server.seen) > before:
                times.append(clock.now())
            clock.advance(10)
        gaps = [b - a for a, b in pairwise(times)]
        assert max(gaps) <= 3600 + 10
        assert sum(gaps[:5]) < 150
        assert sum(gaps[15:]) / len(gaps[15:]) > 1000  # full jitter around half an hour, when the cap is reached
        while not client.upload():
            clock.advance(60)
    assert server.tally == {"accepted": 1}


def test_a_server_that_asks_for_peace_gets_it(folder: Path, clock: ManualClock) -> None:
    server = certain()

    class Busy:
        def request(self, method: str, path: str, headers: Any, body: bytes | None = None) -> Any:
            response = server.request(method, path, headers, body)
            return response._replace(status=503, headers={"retry-after": "300"}) if method == "POST" else response

    begin(server, clock, 5)
    with device(folder, Busy(), clock) as client:
        client.tick()
        client.upload()
        clock.advance(299)
        client.upload()
        assert len(server.bodies) == 1
        clock.advance(2)
        client.upload()
        assert len(server.bodies) == 2


def test_reports_are_spread_over_time(folder: Path, clock: ManualClock) -> None:
    server = certain()
    begin(server, clock, 5)
    delays = []
    for number in range(20):
        clock.set(server.collection.opens(5) + 1)
        with device(folder / str(number), server, clock, jitter=0.5, rng=seeded(number)) as client:
            client.tick()
            while not client.upload():
                clock.advance(30)
            delays.append(clock.now() - server.collection.opens(5))
    assert max(delays) <= HOUR / 2 + 31
    assert max(delays) - min(delays) > HOUR / 4


@pytest.mark.parametrize("reason", ["unknown_ask", "late", "malformed", "replay", "outdated_version", "something new"])
def test_a_rejected_report_is_not_sent_again(folder: Path, clock: ManualClock, reason: str) -> None:
    server = certain()
    begin(server, clock, 5)
    server.rejections = {server.open["popular"][1].ask_id: reason}
    with device(folder, server, clock) as client:
        client.tick()
        assert (client.upload(), client.upload()) == (0, 0)
        clock.advance(100)
        assert client.upload() == 0
        assert client.status().counts == {f"rejected: {reason}": 1}
    assert len(server.bodies) == 1


@pytest.mark.parametrize("reason", ["too_early", "over_quota"])
def test_what_time_can_mend_is_sent_again(folder: Path, clock: ManualClock, reason: str) -> None:
    server = certain()
    begin(server, clock, 5)
    server.rejections = {server.open["popular"][1].ask_id: reason}
    with device(folder, server, clock) as client:
        client.tick()
        assert client.upload() == 0
        server.rejections = {}
        clock.advance(60)
        assert client.upload() == 1
    assert len(set(server.bodies)) == 1


def test_a_report_whose_ask_is_over_is_dropped_and_counted(folder: Path, clock: ManualClock) -> None:
    server = certain()
    begin(server, clock, 5)
    with device(folder, server, clock) as client:
        client.tick()
        clock.set(server.collection.closes(5) + 599)
        assert client.upload() == 1  # within the lateness
        begin(server, clock, 6)
        client.tick()
        clock.set(server.collection.closes(6) + 600)
        assert client.upload() == 0
        status = client.status()
        assert (status.queued, status.counts) == (0, {"late": 1, "sent": 1})
        assert status.spent == 2 * server.open["popular"][1].event().spent  # a debit is for good
    assert len(server.bodies) == 1


def test_days_offline_and_then_online(folder: Path, clock: ManualClock) -> None:
    server = certain()
    begin(server, clock, 5)
    with device(folder, server, clock) as client:
        client.tick()
        client.upload()
    with device(folder, server, clock) as client:
        server.faults = ["unreachable"] * 10_000
        for _ in range(4 * 24 * 6):
            clock.advance(600)
            client.record("theme", "light")  # needs no network
            client.tick()
            client.upload()
        requests = 10_000 - len(server.faults)
        assert 4 * 24 / 2 < requests < 4 * 24 * 4  # about two an hour, once the backoff has grown
        server.faults = []
        server.begin(server.collection.step_at(clock.now()))
        spent = client.status().spent
        for _ in range(12):
            clock.advance(300)
            server.begin(server.collection.step_at(clock.now()))
            client.tick()
            client.upload()
        assert client.status().spent > spent
    assert server.tally["accepted"] >= 2
    assert server.tally.keys() == {"accepted"}


def test_a_restart_goes_on_where_it_was(folder: Path, clock: ManualClock) -> None:
    server = certain()
    begin(server, clock, 5)
    with device(folder, server, clock) as client:
        client.record("theme", "dark")
    with device(folder, server, clock) as client:
        assert client.tick() == 1
    with device(folder, server, clock) as client:
        assert client.tick() == 0
        assert client.status().queued == 1
        assert client.upload() == 1
    with device(folder, server, clock) as client:
        assert (client.tick(), client.upload()) == (0, 0)
    assert last_value(server) == 1
    # The collection was fetched once; the asks too, as they stand until the step ends.
    assert server.seen.count(("GET", "/v1/collections/survey")) == 1
    assert server.seen.count(("GET", "/v1/collections/survey/asks")) == 1


def test_documents_that_did_not_change_are_not_sent_again(folder: Path, clock: ManualClock) -> None:
    server = certain()
    begin(server, clock, 5)
    with device(folder, server, clock) as client:
        client.tick()
        clock.set(server.collection.opens(6) + 1)
        answers = []
        give = server._give
        server._give = lambda path, headers: answers.append(give(path, headers)) or answers[-1]  # type: ignore[method-assign]
        client.tick()
        assert [answer.status for answer in answers] == [304]
        assert client.status().queued == 1  # the ask of step 5 is not answered again


def test_a_tag_that_the_server_chose_is_not_given_back(folder: Path, clock: ManualClock) -> None:
    """A tag of its own for every device would be a cookie; so would spaces that only one device was sent."""
    server = certain()
    begin(server, clock, 5)
    tags: list[str | None] = []
    number = 0

    def give(path: str, headers: Mapping[str, str]) -> Response:
        nonlocal number
        number += 1
        tags.append(headers.get("If-None-Match"))
        body = json.dumps(server.documents[path], indent=number)
        return Response(200, {"etag": f'"device {number}"'}, body.encode())

    server._give = give  # type: ignore[method-assign]
    for name in ("one", "other"):
        with device(folder / name, server, clock) as client:
            client.tick()
    clock.set(server.collection.opens(6) + 1)
    sent = []
    for name in ("one", "other"):
        tags.clear()
        with device(folder / name, server, clock) as client:
            client.tick()
        sent.append([tag for tag in tags if tag is not None])
    assert sent[0] == sent[1]
    assert sent[0]
    assert not any("device" in tag for tag in sent[0])


def test_the_only_collection_is_found_by_itself(folder: Path, clock: ManualClock) -> None:
    server = certain()
    begin(server, clock, 5)
    with device(folder, server, clock, collection=None) as client:
        assert client.tick() == 1
    server.documents["/v1/collections"] = {"collections": [{"name": "a"}, {"name": "b"}]}
    with device(folder, server, clock, collection=None) as client:
        assert client.status().collection == "survey"
    with pytest.raises(InvalidValue, match="one of a, b"):
        device(folder / "other", server, clock, collection=None)
    for hostile in (b"", b"[]", b'{"collections": 7}', b"[" * 10_000):
        server.documents["/v1/collections"] = hostile
        with pytest.raises((Unreachable, InvalidValue)):
            device(folder / "other", server, clock, collection=None)


def test_the_status_of_a_folder_needs_no_server(folder: Path, clock: ManualClock) -> None:
    server = certain()
    with pytest.raises(InvalidValue, match="folder of a client"):
        read_status(folder)
    begin(server, clock, 5)
    with device(folder, server, clock) as client:
        client.tick()
        live = client.status()
    assert read_status(folder, clock) == live
    assert live.event is not None
    assert live.user is not None
    assert (live.queued, live.step, live.event.spent, live.user.spent) == (1, 5, live.spent, live.spent)
    assert live.user.remaining == live.user.limit - live.spent


def test_it_runs_by_itself_until_it_is_stopped(folder: Path) -> None:
    text = TEXT.replace('step = "1h"', 'step = "1s"')
    server = LocalServer(survey(text))
    stop = threading.Event()
    with Listening(server) as url, Client(folder, url, KEYS.public, jitter=0.1) as client:
        thread = threading.Thread(target=client.run_forever, args=(stop,), kwargs={"wait": 0.3})
        server.begin(server.collection.step_at(time.time()))
        thread.start()

        def two_accepted() -> bool:
            server.begin(server.collection.step_at(time.time()))
            return server.tally["accepted"] >= 2

        wait_for(two_accepted)
        stop.set()
        thread.join(timeout=120)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    "options", [{"per_frame": 0}, {"per_frame": True}, {"jitter": 2.0}, {"form": "xml"}, {"collection": ""}]
)
def test_bad_options_are_refused(folder: Path, clock: ManualClock, options: dict[str, Any]) -> None:
    with pytest.raises((InvalidValue, Unreachable)):
        device(folder, "http://127.0.0.1:9", clock, **options)


@pytest.mark.parametrize("key", [b"short", "zz", "00", [], [b"k" * 31]])
def test_bad_keys_are_refused(folder: Path, key: Any) -> None:
    with pytest.raises(InvalidValue, match="public_key"):
        Client(folder, "http://127.0.0.1:9", key, collection="survey")
