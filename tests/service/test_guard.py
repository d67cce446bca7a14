"""Limits of connections: each kind of bad client meets one, is counted, and costs others nothing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hubbub import Random
from hubbub.service.base.limits import ConnectionLimits, Limits, SenderLimits
from hubbub.service.http.metrics import CLOSED, metrics_text
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload
from tests.service.exact_world import EXACT
from tests.service.guarded_server import COLLECTION, TOKEN, Guarded, guarded_server, heard

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
QUICK = ConnectionLimits(header_seconds=0.5, idle_seconds=0.5, body_seconds=0.5, write_seconds=0.5, pipelined=1_000_000)
CHUNKED = (
    b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Guarded]:
    with guarded_server(Limits()) as made:
        yield made


@pytest.fixture(scope="module")
def quick() -> Iterator[Guarded]:
    """A server that has no patience."""
    with guarded_server(Limits(connections=QUICK)) as made:
        yield made


def upload(server: Guarded, number: int) -> bytes:
    entry = Entry(*server.window.name, number.to_bytes(16, "big"), EXACT.randomize([3], Random(seed=0)).to_bare())
    body = encode_upload(COLLECTION.name, COLLECTION.version, [entry], COLLECTION.frame_bytes)
    head = f"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Type: {UPLOAD_TYPE}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def works(server: Guarded, number: int, source: str = "127.0.0.1") -> None:
    """An honest device is served."""
    answer = server.send(upload(server, number), source=source)
    assert status(answer) == 200
    assert b'"accepted":1' in answer


# -- headers ---------------------------------------------------------------------------------------------------

TOO_LARGE = {
    "a header without an end": [b"GET / HTTP/1.1\r\nX: ", *[b"a" * 1000] * 200],
    "a header in one piece": [b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n"],
    "the name of a header": [b"GET / HTTP/1.1\r\n", *[b"a" * 1000] * 200],
    "many headers": [b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 100 + b"\r\n"],
    "many long headers": [b"GET / HTTP/1.1\r\n" + (b"X: " + b"a" * 1000 + b"\r\n") * 20],
    "an address": [b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n"],
    "an address without an end": [b"GET /", *[b"a" * 1000] * 200],
    "what comes after a body": [CHUNKED + b"2\r\n{}\r\n0\r\nX: ", *[b"a" * 1000] * 200],
    "many lines after a body": [CHUNKED + b"2\r\n{}\r\n0\r\n", *[b"X: a\r\n" * 100] * 50],
    "the extension of a chunk": [CHUNKED + b"2;", *[b"a" * 1000] * 200],
    "empty lines": [GET, *[b"\r\n" * 500] * 200],
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_header_has_an_end(name: str, server: Guarded):
    before = server.guard.closed["header_too_large"]
    answer = server.send(*TOO_LARGE[name])
    assert b"HTTP/1.1 431 " in answer or not answer  # who still sends may not hear it
    server.until(lambda: server.guard.closed["header_too_large"] == before + 1)


def test_a_refusal_is_a_problem_document(server: Guarded):
    answer = server.send(b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status(head) == 431
    assert b"application/problem+json" in head
    assert json.loads(body)["type"] == "urn:hubbub:problem:header_too_large"
    answer = server.send(b"\x00\x01 nonsense\r\n\r\n")
    assert (status(answer), b"urn:hubbub:problem:malformed" in answer) == (400, True)


def test_what_a_browser_sends_is_not_too_much(server: Guarded):
    headers = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 200) for number in range(40))
    assert status(server.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + b"\r\n")) == 200


def test_only_so_many_requests_wait_for_the_one_before_them(server: Guarded):
    before = server.guard.closed["malformed"]
    server.send(GET * 5000)
    server.until(lambda: server.guard.closed["malformed"] == before + 1)
    with server.connect() as connection:
        connection.sendall(GET * 10)
        answers = b""
        while answers.count(b"HTTP/1.1 200") < 10:
            piece = connection.recv(65536)
            assert piece
            answers += piece


# -- time ------------------------------------------------------------------------------------------------------

SLOW = {
    "says nothing": ("header", b""),
    "stops in its header": ("header", b"GET / HTTP/1.1\r\nX: "),
    "stops in its body": ("body", CHUNKED + b"2\r\n{"),
    "stops in a body that nobody wanted": ("body", b"POST /healthz HTTP/1.1\r\nContent-Length: 9\r\n\r\n1"),
    "asks once": ("idle", GET),
    "stops in a second header that came too soon": ("idle", GET + b"GET "),
}


@pytest.mark.parametrize("name", SLOW)
def test_nobody_keeps_a_connection_for_nothing(name: str, quick: Guarded):
    state, sent = SLOW[name]
    # A request that is answered before its body has come is at rest, or not, as the answer or the body comes first.
    states = (state, "idle") if sent.startswith(b"POST /healthz") else (state,)
    before = sum(quick.guard.closed[state] for state in states)
    with quick.connect() as connection:
        connection.sendall(sent)
        heard(connection)  # until it is closed
    quick.until(lambda: sum(quick.guard.closed[state] for state in states) >= before + 1)


def test_those_who_drip_are_closed_all_the_same(quick: Guarded):
    for first, drop in ((b"GET / HTTP/1.1\r\n", b"X: a\r\n"), (GET, b"\r\n")):
        before = quick.guard.closed["header"]
        with quick.connect() as connection, contextlib.suppress(OSError):
            connection.sendall(first)
            connection.settimeout(0.1)
            for _ in range(60):
                connection.sendall(drop)
                with contextlib.suppress(TimeoutError):
                    if not connection.recv(65536):
                        break
        quick.until(lambda before=before: quick.guard.closed["header"] == before + 1)  # type: ignore[misc]


# Answers of 25 MB and more: the system holds some 4 MB for a reader that does not come.
MANY = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 1500


def test_an_answer_that_nobody_reads_is_thrown_away(quick: Guarded):
    before = quick.guard.closed["unread"]
    with quick.connect(receive_buffer=4096) as connection, contextlib.suppress(OSError):
        connection.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            connection.sendall(MANY)
        quick.until(lambda: quick.guard.closed["unread"] > before)
    works(quick, 1)


def test_a_listener_that_does_not_read_is_let_go(quick: Guarded):
    before = quick.guard.closed["unread"]
    authorized = f"GET /v1/collections/exact/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with quick.connect(receive_buffer=4096) as connection:
        connection.sendall(authorized.encode())
        quick.until(lambda: len(quick.service.hub) == 1)
        loop = quick.service._loop
        assert loop is not None
        while quick.guard.closed["unread"] == before and len(quick.service.hub):
            loop.call_soon_threadsafe(quick.service.hub.tell, "exact", "ask", {"filler": "x" * 20_000})
            quick.until(lambda: True)
    quick.until(lambda: len(quick.service.hub) == 0)


def test_all_unread_answers_together_have_a_limit():
    limits = replace(QUICK, write_seconds=600.0, unread_bytes=1)
    with guarded_server(Limits(connections=limits)) as server, server.connect(receive_buffer=4096) as connection:
        connection.settimeout(0.2)
        with contextlib.suppress(OSError):
            connection.sendall(MANY)
        server.until(lambda: server.guard.closed["unread"] == 1)


# -- numbers ---------------------------------------------------------------------------------------------------


def test_one_connection_too_many_makes_the_one_go_that_waited_longest():
    with guarded_server(Limits(connections=ConnectionLimits(connections=20))) as server:
        idle = [server.connect() for _ in range(20)]
        server.until(lambda: len(server.guard) == 20)
        idle[0].sendall(GET)  # it has just been of use
        idle[0].recv(65536)
        works(server, 1)
        assert heard(idle[1]) == b""  # closed
        idle[0].sendall(GET)
        assert status(idle[0].recv(65536)) == 200
        many = [server.connect() for _ in range(100)]
        server.until(lambda: server.guard.closed["connections"] == 100)  # one for the honest one, and it has gone
        assert len(server.guard) == 20
        works(server, 2)
        assert heard(many[0]) == b""


def test_one_sender_has_only_so_many_and_a_proxy_is_no_sender():
    with guarded_server(Limits(connections=ConnectionLimits(sender_connections=5))) as server:
        own_connections = [server.connect("127.0.0.2") for _ in range(9)]
        server.until(lambda: server.guard.closed["sender_connections"] == 4)
        assert len(server.guard) == 5
        works(server, 1, "127.0.0.3")
        proxy = [server.connect() for _ in range(9)]
        server.until(lambda: len(server.guard) == 14)
        for connection in (*own_connections, *proxy):
            connection.close()
        server.until(lambda: len(server.guard) == 0)
        works(server, 2, "127.0.0.2")


def test_unfinished_bodies_together_have_a_limit(server: Guarded):
    bodies = server.service.bodies
    most, bodies.most = bodies.most, 10 << 20
    head = b"POST /v1/reports HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n\r\n"
    try:
        slow = [server.connect() for _ in range(8)]
        for number, connection in enumerate(slow):
            connection.sendall(head + b"x" * 3_999_999)
            server.until(lambda number=number: bodies.sent_away == max(number - 1, 0))  # type: ignore[misc]
            assert bodies.total <= 10 << 20
        assert status(heard(slow[0])) == 408
        works(server, 77)
    finally:
        for connection in slow:
            connection.close()
        server.until(lambda: bodies.total == 0)
        bodies.most = most


def test_a_server_never_takes_more_connections_than_it_may_open_files(monkeypatch: pytest.MonkeyPatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    assert ConnectionLimits().most == 1024 - 128
    assert ConnectionLimits(connections=7).most == 7


def test_bad_requests_write_no_lines(server: Guarded, caplog: pytest.LogCaptureFixture):
    with caplog.at_level("INFO"):
        for _ in range(5):
            server.send(b"\x00\r\n\r\n")
            server.send(b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n\r\n")
    assert [record for record in caplog.records if record.name != "hubbub.service"] == []


def test_what_was_closed_is_in_the_metrics(server: Guarded):
    assert set(server.guard.closed) <= set(CLOSED)
    text = metrics_text(server.service)
    assert f'hubbub_closed_total{{reason="header_too_large"}} {server.guard.closed["header_too_large"]}' in text


# -- senders ---------------------------------------------------------------------------------------------------


def test_a_sender_that_sends_too_much_is_told_when_to_come_back():
    with guarded_server(Limits(senders=SenderLimits(rate=0.1, burst=100))) as server:
        for number in range(100):
            if status(server.send(upload(server, number), source="127.0.0.2")) != 200:
                break
        taken = server.window.sketch.n
        assert 60 <= taken <= 70  # until it is over, a request of a kilobyte counts as 33 reports
        answer = server.send(upload(server, 9), source="127.0.0.2")
        assert status(answer) == 429
        assert b"urn:hubbub:problem:over_sender_quota" in answer
        assert int(answer.partition(b"retry-after: ")[2].split()[0]) > 1
        assert server.window.sketch.n == taken
        works(server, 1004, "127.0.0.3")
        for number in range(2010, 2200):
            works(server, number)  # the machine's own address: a proxy, for all anyone knows
        assert len(server.service.senders) == 2
        assert server.service.collector.counts()["", "over_sender_quota"] == 2


def test_nothing_is_read_of_who_has_sent_too_much():
    with guarded_server(Limits(senders=SenderLimits(rate=0.001, burst=1))) as server:
        works(server, 1, "127.0.0.2")
        head = b"POST /v1/reports HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n\r\n"
        with server.connect("127.0.0.2") as connection:
            connection.sendall(head)  # and not one byte of the body
            assert status(connection.recv(65536)) == 429
        server.until(lambda: len(server.guard) == 0)
