"""A device's day: record, tick, upload; and what happens when the network fails."""

import json
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import Client, NotReady, Response, Unreachable, read_status
from hubbub.core.errors import InvalidValue
from hubbub.wire.upload import decode_upload, decode_upload_json
from tests.client.device import HOUR, World, device, seeded
from tests.client.local_server import KEYS, TEXT, Listening, LocalServer, survey
from tests.served import wait_for
from tests.shared.small_collections import collection_text

SURE = {"epsilon_above_8": "so that a report is the value"}
FAR = collection_text(
    privacy={"window": {"epsilon": 60.0, "steps": 4}, "minimum_batch": 20},
    fields={"theme": {"kind": "categorical", "names": ["light", "dark", "blue", "green"]}},
    questions={"watched": {"kind": "stream", "field": "theme", "epsilon": 60.0, "method": "LBD", "w": 4}},
    override=SURE,
)
CERTAIN = f'{TEXT}\n[override]\nepsilon_above_8 = "{SURE["epsilon_above_8"]}"\n'
"""The one question takes so much epsilon that a report is the value itself, but once in e^60."""


class Certain(World):
    """A server of the collection `CERTAIN`, at step 5."""

    def __init__(self, folder: Path, **changes: str) -> None:
        super().__init__(folder, CERTAIN, event="60.0", user="6000.0", epsilon="60.0", **changes)
        self.begin(5)

    def reject(self, reason: str) -> None:
        """Reject every report to the ask of now."""
        self.server.rejections = {self.server.open["popular"][1].ask_id: reason}


@pytest.fixture
def here(folder: Path) -> Certain:
    return Certain(folder)


def last_value(server: LocalServer, question: str = "popular") -> int:
    _, ask = server.open[question]
    (report,) = server.reports[ask.ask_id].values()
    return int(ask.mechanism.read_bare(report).private["value"][0])


def test_a_report_a_step_over_http(here: Certain) -> None:
    with Listening(here.server) as url, device(here.folder, url, here.clock) as client:
        for step in (5, 6, 9):
            assert (here.live(client, step, theme="dark"), last_value(here.server)) == (1, 1)
            here.server.end()
        assert [release.n for release in here.server.releases["popular"]] == [1.0] * 3
    assert here.server.tally == {"accepted": 3}


def test_the_last_value_of_the_step_wins_and_missing_is_a_symbol(here: Certain) -> None:
    with here.device() as client:
        client.record("theme", "light")
        client.record("theme", "dark")
        assert (client.tick(), client.tick(), client.upload(), last_value(here.server)) == (1, 0, 1, 1)
        # What was recorded in step 5 is not the value of step 6.
        assert (here.live(client, 6), last_value(here.server)) == (1, 2)
        assert (here.live(client, 7, theme="light"), last_value(here.server)) == (1, 0)


def test_waiting_lets_the_whole_step_be_recorded(here: Certain) -> None:
    with here.device() as client:
        assert client.tick(wait=0.8) == 0
        here.clock.advance(0.7 * HOUR)
        client.record("theme", "dark")
        assert client.tick(wait=0.8) == 0
        here.clock.advance(0.2 * HOUR)
        assert (client.tick(wait=0.8), client.upload(), last_value(here.server)) == (1, 1, 1)


def test_both_asks_of_a_step_see_one_value(folder: Path) -> None:
    here = World(folder, FAR)
    with here.at(3) as client:
        values = []
        client.record("theme", "blue")
        for _ in range(2):
            if "watched" in here.server.open:
                assert (client.tick(), client.upload()) == (1, 1)
                values.append(last_value(here.server, "watched"))
            client.record("theme", "green")
            here.clock.set(here.collection.opens(3) + HOUR / 2 + 1)
            here.server.half()
    assert values == [2, 2]


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [("theme", "purple", "theme: got 'purple'"), ("colour", "dark", "field: got 'colour'"), ("theme", 3, "theme")],
)
def test_what_is_not_a_value_is_refused_before_anything_is_sent(here: Certain, field: str, value: Any, match: str):
    with here.device() as client:
        with pytest.raises(InvalidValue, match=match):
            client.record(field, value)
        assert (client.tick(), client.upload(), last_value(here.server)) == (1, 1, 2)


def test_without_a_server_nothing_is_recorded_and_nothing_breaks(here: Certain) -> None:
    here.server.faults = ["unreachable"] * 3
    with here.device() as client:
        with pytest.raises(NotReady, match="no route"):
            client.record("theme", "dark")
        with pytest.raises(NotReady):
            client.status()
        assert (client.tick(), client.upload()) == (0, 0)
        here.server.faults = []
        here.clock.advance(100)
        assert (client.tick(), client.upload()) == (1, 1)


def test_frames_have_one_size_and_retries_send_the_same_bytes(here: Certain) -> None:
    with here.device() as client:
        client.tick()
        here.server.faults = ["lost answer", "500", "garbled answer", "429"]
        for _ in range(40):
            here.clock.advance(5)
            if client.upload():
                break
    # The bodies that were answered with a status were never read by the server.
    bodies = here.server.bodies
    assert len(bodies) == 3
    assert len(set(bodies)) == 1
    assert len(bodies[0]) == here.collection.frame_bytes
    assert here.server.tally == {"accepted": 1, "duplicate": 2}
    assert len(decode_upload(bodies[0]).entries) == 1


def test_uploads_can_be_spelt_in_json(here: Certain) -> None:
    with here.device(form="json") as client:
        assert (client.tick(), client.upload()) == (1, 1)
    (body,) = here.server.bodies
    assert decode_upload_json(body).entries
    assert len(body) == 2 * here.collection.frame_bytes
    assert json.loads(body)["collection"] == here.collection.name


def test_after_a_failure_the_client_waits_longer_and_longer(folder: Path) -> None:
    here = Certain(folder, lateness='"7d"')
    with here.device(rng=seeded(3)) as client:
        client.tick()
        here.server.faults = ["500"] * 30
        times = []
        while here.server.faults:
            before = len(here.server.seen)
            client.upload()
            if len(here.server.seen) > before:
                times.append(here.clock.now())
            here.clock.advance(10)
        gaps = [b - a for a, b in pairwise(times)]
        assert max(gaps) <= 3600 + 10
        assert sum(gaps[:5]) < 150
        assert sum(gaps[15:]) / len(gaps[15:]) > 1000  # full jitter around half an hour, when the cap is reached
        while not client.upload():
            here.clock.advance(60)
    assert here.server.tally == {"accepted": 1}


def test_a_server_that_asks_for_peace_gets_it(here: Certain) -> None:
    class Busy:
        def request(self, method: str, path: str, headers: Any, body: bytes | None = None) -> Any:
            response = here.server.request(method, path, headers, body)
            return response._replace(status=503, headers={"retry-after": "300"}) if method == "POST" else response

    with device(here.folder, Busy(), here.clock) as client:
        client.tick()
        client.upload()
        for later, bodies in ((299, 1), (2, 2)):
            here.clock.advance(later)
            client.upload()
            assert len(here.server.bodies) == bodies


def test_reports_are_spread_over_time(here: Certain) -> None:
    delays = []
    opens = here.collection.opens(5)
    for number in range(20):
        here.clock.set(opens + 1)
        with here.device(str(number), jitter=0.5, rng=seeded(number)) as client:
            client.tick()
            while not client.upload():
                here.clock.advance(30)
            delays.append(here.clock.now() - opens)
    assert max(delays) <= HOUR / 2 + 31
    assert max(delays) - min(delays) > HOUR / 4


@pytest.mark.parametrize("reason", ["unknown_ask", "late", "malformed", "replay", "outdated_version", "something new"])
def test_a_rejected_report_is_not_sent_again(here: Certain, reason: str) -> None:
    here.reject(reason)
    with here.device() as client:
        client.tick()
        assert (client.upload(), client.upload()) == (0, 0)
        here.clock.advance(100)
        assert client.upload() == 0
        assert client.status().counts == {f"rejected: {reason}": 1}
    assert len(here.server.bodies) == 1


@pytest.mark.parametrize("reason", ["too_early", "over_quota"])
def test_what_time_can_mend_is_sent_again(here: Certain, reason: str) -> None:
    here.reject(reason)
    with here.device() as client:
        assert (client.tick(), client.upload()) == (1, 0)
        here.server.rejections = {}
        here.clock.advance(60)
        assert client.upload() == 1
    assert len(set(here.server.bodies)) == 1


def test_a_report_whose_ask_is_over_is_dropped_and_counted(here: Certain) -> None:
    with here.device() as client:
        client.tick()
        here.clock.set(here.collection.closes(5) + 599)
        assert client.upload() == 1  # within the lateness
        here.begin(6)
        client.tick()
        here.clock.set(here.collection.closes(6) + 600)
        assert client.upload() == 0
        status = client.status()
        assert (status.queued, status.counts) == (0, {"late": 1, "sent": 1})
        assert status.spent == 2 * here.server.open["popular"][1].event().spent  # a debit is for good
    assert len(here.server.bodies) == 1


def test_days_offline_and_then_online(here: Certain) -> None:
    here.spend([5])
    with here.device() as client:
        here.server.faults = ["unreachable"] * 10_000
        for _ in range(4 * 24 * 6):
            here.clock.advance(600)
            client.record("theme", "light")  # needs no network
            client.tick()
            client.upload()
        requests = 10_000 - len(here.server.faults)
        assert 4 * 24 / 2 < requests < 4 * 24 * 4  # about two an hour, once the backoff has grown
        here.server.faults = []
        here.server.begin(here.collection.step_at(here.clock.now()))
        spent = client.status().spent
        for _ in range(12):
            here.clock.advance(300)
            here.server.begin(here.collection.step_at(here.clock.now()))
            client.tick()
            client.upload()
        assert client.status().spent > spent
    assert here.server.tally["accepted"] >= 2
    assert here.server.tally.keys() == {"accepted"}


def test_a_restart_goes_on_where_it_was(here: Certain) -> None:
    with here.device() as client:
        client.record("theme", "dark")
    with here.device() as client:
        assert client.tick() == 1
    with here.device() as client:
        assert client.tick() == 0
        assert client.status().queued == 1
        assert client.upload() == 1
    with here.device() as client:
        assert (client.tick(), client.upload()) == (0, 0)
    assert last_value(here.server) == 1
    # The collection was fetched once; the asks too, as they stand until the step ends.
    assert here.server.seen.count(("GET", "/v1/collections/survey")) == 1
    assert here.server.seen.count(("GET", "/v1/collections/survey/asks")) == 1


def test_documents_that_did_not_change_are_not_sent_again(here: Certain) -> None:
    with here.device() as client:
        client.tick()
        here.clock.set(here.collection.opens(6) + 1)
        here.server.statuses.clear()
        client.tick()
        assert here.server.statuses == [304]
        assert client.status().queued == 1  # the ask of step 5 is not answered again


def test_a_tag_that_the_server_chose_is_not_given_back(here: Certain) -> None:
    """A tag of its own for every device would be a cookie; so would spaces that only one device was sent."""
    tags: list[str | None] = []
    number = 0

    class Tagging:
        def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
            nonlocal number
            number += 1
            tags.append(headers.get("If-None-Match"))
            document = json.dumps(here.server.documents[path], indent=number)
            return Response(200, {"etag": f'"device {number}"'}, document.encode())

    def tick(name: str) -> list[str | None]:
        tags.clear()
        with device(here.folder / name, Tagging(), here.clock) as client:
            client.tick()
        return [tag for tag in tags if tag is not None]

    assert (tick("one"), tick("other")) == ([], [])
    here.clock.set(here.collection.opens(6) + 1)
    first, second = tick("one"), tick("other")
    assert first == second != []
    assert not any("device" in (tag or "") for tag in first)


def test_the_only_collection_is_found_by_itself(here: Certain) -> None:
    with here.device(collection=None) as client:
        assert client.tick() == 1
    here.server.documents["/v1/collections"] = {"collections": [{"name": "a"}, {"name": "b"}]}
    with here.device(collection=None) as client:
        assert client.status().collection == "survey"
    with pytest.raises(InvalidValue, match="one of a, b"):
        here.device("other", collection=None)
    for hostile in (b"", b"[]", b'{"collections": 7}', b"[" * 10_000):
        here.server.documents["/v1/collections"] = hostile
        with pytest.raises((Unreachable, InvalidValue)):
            here.device("other", collection=None)


def test_the_status_of_a_folder_needs_no_server(here: Certain) -> None:
    with pytest.raises(InvalidValue, match="folder of a client"):
        read_status(here.folder)
    with here.device() as client:
        client.tick()
        live = client.status()
    assert read_status(here.folder, here.clock) == live
    assert live.event is not None
    assert live.user is not None
    assert (live.queued, live.step, live.event.spent, live.user.spent) == (1, 5, live.spent, live.spent)
    assert live.user.remaining == live.user.limit - live.spent


def test_it_runs_by_itself_until_it_is_stopped(folder: Path) -> None:
    server = LocalServer(survey(step='"1s"'))
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
def test_bad_options_are_refused(here: Certain, options: dict[str, Any]) -> None:
    with pytest.raises((InvalidValue, Unreachable)):
        device(here.folder, "http://127.0.0.1:9", here.clock, **options)


@pytest.mark.parametrize("key", [b"short", "zz", "00", [], [b"k" * 31]])
def test_bad_keys_are_refused(folder: Path, key: Any) -> None:
    with pytest.raises(InvalidValue, match="public_key"):
        Client(folder, "http://127.0.0.1:9", key, collection="survey")
