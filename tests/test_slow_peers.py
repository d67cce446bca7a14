"""Every Python program that reads from a network ends its requests, whatever the peer does."""

import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import Client, HttpTransport, NotReady, Unreachable, upload
from hubbub.collection import Keys, SystemClock
from hubbub.core.errors import InvalidValue
from hubbub.query import connect as remote
from hubbub.query.connect import CollectorAway, RemoteTable
from hubbub.service.alarms import AlarmEvent
from hubbub.service.webhooks.config import Webhook
from hubbub.service.webhooks.sender import NotDelivered, deliver
from hubbub.shuffler.config import ShufflerKeys
from hubbub.shuffler.hop import ShufflerHop
from hubbub.shuffler.spot_check import send_spot_checks
from hubbub.shuffler.store import ShufflerStore
from hubbub.watch import remote as collector_api
from hubbub.watch.remote import Away, CollectorApi, RemoteWatch
from tests.shared.certificates import write_certificate
from tests.shared.slow_peers import ENDLESS, HANG, SLOW, SlowAnswer, outcomes, outcomes_of, slow_peer
from tests.shuffler.shuffle_world import ShuffleWorld

SHORT, LONG = 0.5, 10 * HANG
"""Deadlines that are injected: one that is over soon, and one that ends no request within a test."""
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n"


def get(url: str, seconds: float) -> object:
    return HttpTransport(url, timeout=seconds).request("GET", "/v1/collections", {})


def tick(url: str, seconds: float) -> str:
    with tempfile.TemporaryDirectory() as folder:
        server = HttpTransport(url, timeout=seconds)
        with Client(folder, server, Keys.new().public, collection="themes", jitter=0.0) as client:
            assert client.tick() == client.upload() == 0
            with pytest.raises(NotReady, match=r"no collection yet: (?!the server was not asked)"):
                client.status()
            return "goes on"


def upload_to_a_shuffler(url: str, seconds: float) -> str:
    world = ShuffleWorld()
    with (
        tempfile.TemporaryDirectory() as folder,
        world.device(Path(folder), connect=lambda _: HttpTransport(url, timeout=seconds)) as client,
    ):
        assert client.tick() == 1
        assert client.upload() == 0
        return "goes on" if client.status().queued == 1 else "the report is gone"


def look_for_the_collection(url: str, seconds: float) -> str:
    collector = HttpTransport(url, timeout=seconds)
    keys, store = ShufflerKeys.generate(), ShufflerStore(":memory:")
    hop = ShufflerHop("themes", keys, store, collector, Keys.new().public, clock=SystemClock())
    hop.tick()
    store.close()
    return "goes on" if hop.trouble else "no trouble is told"


def spot_check(url: str, seconds: float) -> object:
    return send_spot_checks(HttpTransport(url, timeout=seconds), "themes", "token", Keys.new().public, 1)


def query(url: str, seconds: float) -> object:
    return RemoteTable(url, token=None, collection="a", question="b", timeout=seconds).sql("SELECT COUNT(*) FROM t")


def watch(url: str, seconds: float) -> object:
    return RemoteWatch(CollectorApi(url, token=None, timeout=seconds))


def events(url: str, seconds: float) -> object:
    return list(CollectorApi(url, token=None, timeout=seconds).events("themes"))


def webhook(url: str, seconds: float) -> object:
    names: Any = dict.fromkeys(("collection", "alarm", "category", "question", "title", "state", "direction"), "a")
    numbers: Any = dict.fromkeys(("number", "step", "at", "since", "value", "low", "high"), 1)
    hook = Webhook("pager", url, (b"k" * 32,))
    object.__setattr__(hook, "timeout", seconds)  # a file allows whole seconds up to a minute
    return deliver(hook, AlarmEvent(**names, **numbers, threshold=None, baseline=None), 1e9)


PROGRAMS: dict[Callable[[str, float], Any], Any] = {
    get: Unreachable,
    tick: "goes on",
    upload_to_a_shuffler: "goes on",
    look_for_the_collection: "goes on",
    spot_check: Unreachable,
    query: CollectorAway,
    watch: Away,
    events: Away,
    webhook: NotDelivered,
}
programs = pytest.mark.parametrize(("program", "ends"), PROGRAMS.items(), ids=[each.__name__ for each in PROGRAMS])


def answers_to(program: Callable[[str, float], Any], answers: Mapping[str, SlowAnswer]) -> Mapping[str, SlowAnswer]:
    """The answers that concern a program: a webhook reads the head of an answer only, a stream of events may last."""
    heads = {name: answer for name, answer in answers.items() if b"\r\n\r\n" not in answer.begins}
    return heads if program in (webhook, events) else answers


@programs
def test_a_slow_answer_ends_at_the_deadline(program: Callable[[str, float], Any], ends: Any) -> None:
    answers = answers_to(program, SLOW)
    assert outcomes(lambda url: program(url, SHORT), answers) == dict.fromkeys(answers, ends)


@programs
def test_an_endless_answer_ends_at_the_greatest_size(program, ends, monkeypatch) -> None:
    monkeypatch.setattr(remote, "LARGEST", 1 << 20)
    answers = answers_to(program, ENDLESS)
    found = outcomes(lambda url: program(url, LONG), answers)
    if program is query:
        found = {name: CollectorAway if end is InvalidValue else end for name, end in found.items()}
    assert found == dict.fromkeys(answers, ends)


@pytest.mark.parametrize(
    "answer",
    [
        SlowAnswer(_STREAM),
        SlowAnswer(_STREAM, b"a"),
        SlowAnswer(_STREAM + b"event: release\ndata: ", b" "),
        SlowAnswer(_STREAM, b"data: " * 1000, 0),
        SlowAnswer(_STREAM, b": still here\n\n" * 1000, 0),
        SlowAnswer(_STREAM, b"event: release\n" * 1000, 0),
        SlowAnswer(_STREAM + b"event: release\ndata: {\n\n"),
        SlowAnswer(_STREAM + b"event: release\ndata: []\n\n"),
    ],
    ids=["silence", "a slow line", "slow data", "a line", "comments", "names", "no JSON", "a list"],
)
def test_a_stream_of_events_that_says_nothing_is_away(answer: SlowAnswer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_api, "SILENCE", SHORT if answer.pace else LONG)
    assert outcomes(lambda url: events(url, LONG), {"": answer}) == {"": Away}


def test_a_stream_of_events_may_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments keep it open, and what one event takes does not count against the next."""
    for module in (collector_api, upload):
        monkeypatch.setattr(module, "MOST_BYTES", 1000)
    with slow_peer(SlowAnswer(_STREAM, b": still here\n\nevent: ask\ndata: {}\n\n")) as peer:
        stream = CollectorApi(peer.url, token=None, timeout=SHORT).events("themes")
        assert next(stream) is None
        assert [next(stream) for _ in range(100)] == [("ask", {})] * 100
        stream.close()


def test_a_peer_that_reads_slowly_ends_at_the_deadline() -> None:
    body, closed = bytes(64 << 20), threading.Event()
    sizes: list[int] = []

    def read_slowly() -> None:
        connection, _ = listener.accept()
        with suppress(OSError), connection:
            while not closed.wait(0.05):  # all of it would take 13 seconds
                sizes.append(len(connection.recv(1 << 18)))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        reading = threading.Thread(target=read_slowly)
        reading.start()
        server = HttpTransport(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=SHORT)
        with pytest.raises(Unreachable, match="timed out"):
            server.request("POST", "/v1/shuffled", {}, body)
        closed.set()
        reading.join()
    assert 0 < sum(sizes) < len(body) / 2


@pytest.mark.parametrize("part", ["handshake", "body"])
def test_a_slow_peer_with_tls_ends_at_the_deadline(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "localhost.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "localhost.pem", tmp_path / "localhost.key")
    answer = SlowAnswer(b"\x16\x03\x03\x40\x00", b"\x02") if part == "handshake" else SLOW["a slow body"]
    with slow_peer(answer, None if part == "handshake" else context) as peer:
        url = f"https://localhost:{peer.port}"
        assert outcomes_of({part: lambda: get(url, SHORT)}) == {part: Unreachable}
        assert peer.requests == ([] if part == "handshake" else [b"GET /v1/collections HTTP/1.1"])


def test_a_request_may_have_less_time_than_the_others() -> None:
    def post(url: str) -> object:
        return HttpTransport(url, timeout=LONG).request("POST", "/v1/shuffled", {}, b"", at_most=SHORT)

    assert outcomes(post, SLOW) == dict.fromkeys(SLOW, Unreachable)


def test_a_body_that_is_cut_off_is_no_answer() -> None:
    cut_off = SlowAnswer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]", pace=-1)
    with slow_peer(cut_off) as peer, pytest.raises(Unreachable, match="IncompleteRead"):
        get(peer.url, LONG)
