"""Limits of connections: each kind of bad client meets one, is counted, and costs others nothing."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from hubbub import Random
from hubbub.collection import ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.service.base.limits import ConnectionLimits, Limits, RefusedRequest, SenderLimits
from hubbub.service.http.bodies import Bodies
from hubbub.service.http.guard import HEADER, Senders, read_secret, signed_sender
from hubbub.service.http.metrics import CLOSED, metrics_text
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import bind, create_app, loop_factory, server_config
from hubbub.service.http.service import Service
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload
from tests.served import wait_for
from tests.service.exact_world import EXACT
from tests.service.process import COLLECTION
from tests.service.web import TOKEN
from tests.shared.in_process import start_collector

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
# Seconds that a state may last: a test lets the time run out itself, once a connection is in the state.
SECONDS = {"header": 1000.0, "body": 2000.0, "idle": 3000.0}
IMPATIENT = ConnectionLimits(
    header_seconds=SECONDS["header"],
    body_seconds=SECONDS["body"],
    idle_seconds=SECONDS["idle"],
    write_seconds=0.5,
    pipelined=1_000_000,
)
CHUNKED = (
    b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


class Guarded:
    """A collector behind a real socket, in this process: so that a test can look at what it holds."""

    def __init__(self, service: Service, port: int, loop: asyncio.AbstractEventLoop) -> None:
        self.service, self.port, self.loop = service, port, loop
        self.guard = service.guard
        (self.window,) = service.collector.board.asks.values()
        self._open: list[socket.socket] = []

    def connect(self, source: str = "127.0.0.1", *, receive_buffer: int = 0) -> socket.socket:
        connection = socket.socket()
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(30)
        connection.bind((source, 0))
        connection.connect(("127.0.0.1", self.port))
        self._open.append(connection)
        return connection

    def send(self, *pieces: bytes, source: str = "127.0.0.1") -> bytes:
        """What is answered to some pieces on a connection of their own; b"" if it is closed without a word."""
        with self.connect(source) as connection:
            try:
                for piece in pieces:
                    connection.sendall(piece)
            except OSError:
                pass  # it may be closed before all is sent
            return heard(connection)

    @contextmanager
    def closes_one(self, *reasons: str) -> Iterator[None]:
        """One connection is closed for one of these reasons."""
        before = self.closed(*reasons)
        yield
        wait_for(lambda: self.closed(*reasons) > before)

    def only_connection(self) -> tuple[str, float]:
        """The state of the connection, and when its time is over; "" while there is none, or several."""

        async def look() -> tuple[str, float]:
            connections = list(self.guard.connections)
            if len(connections) != 1:
                return "", 0.0
            return connections[0].state, connections[0].deadline

        return asyncio.run_coroutine_threadsafe(look(), self.loop).result(60)

    def run_out(self) -> None:
        """The time of every connection is over."""

        def expire() -> None:
            for connection in self.guard.connections:
                connection.deadline = 0.0

        self.loop.call_soon_threadsafe(expire)

    def closed(self, *reasons: str) -> int:
        return sum(self.guard.closed[reason] for reason in reasons)

    def close(self) -> None:
        for connection in self._open:
            connection.close()


def heard(connection: socket.socket) -> bytes:
    """All that comes until the connection is closed."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


@contextmanager
def guarded_server(limits: Limits) -> Iterator[Guarded]:
    collector = start_collector(COLLECTION, ManualClock(1000.0), limits=limits)
    service, listening = Service(collector), bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = uvicorn.Server(server_config(create_app(service, Tokens([TOKEN])), service.guard))

    runner = asyncio.Runner(loop_factory=loop_factory())
    guarded = Guarded(service, port, runner.get_loop())

    def serve() -> None:
        with runner:
            runner.run(server.serve(sockets=[listening]))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield guarded
    finally:
        guarded.close()
        server.should_exit = True
        thread.join(60)


@pytest.fixture(scope="module")
def server() -> Iterator[Guarded]:
    with guarded_server(Limits()) as made:
        yield made


@pytest.fixture(scope="module")
def impatient() -> Iterator[Guarded]:
    """A server that waits half a second for those who do not read."""
    with guarded_server(Limits(connections=IMPATIENT)) as made:
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
    with server.closes_one("header_too_large"):
        answer = server.send(*TOO_LARGE[name])
        assert b"HTTP/1.1 431 " in answer or not answer  # who still sends may not hear it


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
    with server.closes_one("malformed"):
        server.send(GET * 5000)
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
def test_nobody_keeps_a_connection_for_nothing(name: str, impatient: Guarded):
    state, sent = SLOW[name]
    # A request that is answered before its body has come is at rest, or not, as the answer or the body comes first.
    states = (state, "idle") if sent.startswith(b"POST /healthz") else (state,)
    wait_for(lambda: len(impatient.guard) == 0)
    with impatient.closes_one(*states), impatient.connect() as connection:
        connection.sendall(sent)
        if sent.startswith((b"GET /healthz", b"POST /healthz")):
            assert status(connection.recv(65536)) in (200, 405)
        wait_for(lambda: impatient.only_connection()[0] in states)
        state, deadline = impatient.only_connection()
        assert SECONDS[state] - 500 < deadline - impatient.loop.time() < SECONDS[state] + 1e-6  # rounding
        impatient.run_out()
        heard(connection)  # until it is closed


@pytest.mark.parametrize(("first", "drop"), [(b"GET / HTTP/1.1\r\n", b"X: a\r\n"), (GET, b"\r\n")])
def test_those_who_drip_get_no_more_time(first: bytes, drop: bytes, impatient: Guarded):
    wait_for(lambda: len(impatient.guard) == 0)
    with impatient.closes_one("header"), impatient.connect() as connection:
        connection.sendall(first)
        if first == GET:
            assert status(connection.recv(65536)) == 200
            wait_for(lambda: impatient.only_connection()[0] == "idle")
        connection.sendall(drop)
        wait_for(lambda: impatient.only_connection()[0] == "header")
        deadline = impatient.only_connection()[1]
        for _ in range(20):
            connection.sendall(drop)
            time.sleep(0.01)  # pieces that arrive one by one
            assert impatient.only_connection() == ("header", deadline)
        impatient.run_out()
        heard(connection)


# Answers of 25 MB and more: the system holds some 4 MB for a reader that does not come.
MANY = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 1500


def test_an_answer_that_nobody_reads_is_thrown_away(impatient: Guarded):
    before = impatient.guard.closed["unread"]
    with impatient.connect(receive_buffer=4096) as connection, contextlib.suppress(OSError):
        connection.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            connection.sendall(MANY)
        wait_for(lambda: impatient.guard.closed["unread"] > before)
    works(impatient, 1)


def test_a_listener_that_does_not_read_is_let_go(impatient: Guarded):
    before = impatient.guard.closed["unread"]
    authorized = f"GET /v1/collections/exact/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with impatient.connect(receive_buffer=4096) as connection:
        connection.sendall(authorized.encode())
        wait_for(lambda: len(impatient.service.hub) == 1)
        while impatient.guard.closed["unread"] == before and len(impatient.service.hub):
            impatient.loop.call_soon_threadsafe(
                partial(impatient.service.hub.tell, "exact", "ask", {"filler": "x" * 20_000})
            )
            time.sleep(0.01)
    wait_for(lambda: len(impatient.service.hub) == 0)


def test_all_unread_answers_together_have_a_limit():
    limits = replace(IMPATIENT, write_seconds=600.0, unread_bytes=1)
    with guarded_server(Limits(connections=limits)) as server, server.connect(receive_buffer=4096) as connection:
        connection.settimeout(0.2)
        with contextlib.suppress(OSError):
            connection.sendall(MANY)
        wait_for(lambda: server.guard.closed["unread"] == 1)


# -- numbers ---------------------------------------------------------------------------------------------------


def test_one_connection_too_many_makes_the_one_go_that_waited_longest():
    with guarded_server(Limits(connections=ConnectionLimits(connections=20))) as server:
        idle = [server.connect() for _ in range(20)]
        wait_for(lambda: len(server.guard) == 20)
        idle[0].sendall(GET)  # it has just been of use
        idle[0].recv(65536)
        works(server, 1)
        assert heard(idle[1]) == b""  # closed
        idle[0].sendall(GET)
        assert status(idle[0].recv(65536)) == 200
        many = [server.connect() for _ in range(100)]
        wait_for(lambda: server.guard.closed["connections"] == 100)  # one for the honest one, and it has gone
        assert len(server.guard) == 20
        works(server, 2)
        assert heard(many[0]) == b""


def test_one_sender_has_only_so_many_and_a_proxy_is_no_sender():
    with guarded_server(Limits(connections=ConnectionLimits(sender_connections=5))) as server:
        own_connections = [server.connect("127.0.0.2") for _ in range(9)]
        wait_for(lambda: server.guard.closed["sender_connections"] == 4)
        assert len(server.guard) == 5
        works(server, 1, "127.0.0.3")
        proxy = [server.connect() for _ in range(9)]
        wait_for(lambda: len(server.guard) == 14)
        for connection in (*own_connections, *proxy):
            connection.close()
        wait_for(lambda: len(server.guard) == 0)
        works(server, 2, "127.0.0.2")


def has_sent_away(bodies: Bodies, number: int) -> bool:
    return bodies.sent_away == number


def test_unfinished_bodies_together_have_a_limit(server: Guarded):
    bodies = server.service.bodies
    most, bodies.most = bodies.most, 10 << 20
    head = b"POST /v1/reports HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n\r\n"
    try:
        slow = [server.connect() for _ in range(8)]
        for number, connection in enumerate(slow):
            connection.sendall(head + b"x" * 3_999_999)
            wait_for(partial(has_sent_away, bodies, max(number - 1, 0)))
            assert bodies.total <= 10 << 20
        assert status(heard(slow[0])) == 408
        works(server, 77)
    finally:
        for connection in slow:
            connection.close()
        wait_for(lambda: bodies.total == 0)
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
        wait_for(lambda: len(server.guard) == 0)


# -- the table of senders --------------------------------------------------------------------------------------

SECRET = b"what the proxy and the collector know"


def senders_with(**limits: Any) -> tuple[Senders, ManualClock]:
    clock = ManualClock(1000.0)
    return Senders(SenderLimits(**limits), clock, Random(seed=1)), clock


def proxied(address: str, secret: bytes = SECRET) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"x"), (HEADER, signed_sender(address, secret).encode())]


def test_a_name_lasts_an_hour_and_tells_nothing():
    senders, clock = senders_with()
    first = senders.name("192.0.2.7", [])
    assert first is not None
    assert "192" not in first
    clock.advance(3599.0)
    assert senders.name("192.0.2.7", []) == first
    senders.take(first, 1)
    clock.advance(1.0)
    assert senders.name("192.0.2.7", []) not in (None, first)
    assert len(senders) == 0
    clock.set(0.0)  # a clock that was set back changes the key too
    other = senders.name("192.0.2.7", [])
    clock.set(1.0)
    assert senders.name("192.0.2.7", []) == other


def test_no_address_is_kept():
    senders, _ = senders_with()
    for number in range(100):
        senders.take(senders.name(f"198.51.100.{number}", []), 1)
    assert len(senders) == 100
    assert "198.51" not in repr(vars(senders)) + repr(vars(senders._quota))


def test_a_household_is_one_sender():
    senders, _ = senders_with()
    assert (
        senders.name("2001:db8::1", []) == senders.name("2001:db8::ffff:2", []) != senders.name("2001:db8:0:1::1", [])
    )
    assert senders.name("::ffff:192.0.2.7", []) == senders.name("192.0.2.7", [])


def test_the_table_does_not_grow():
    senders, clock = senders_with(most=50, rate=1.0, burst=1)
    busy = senders.name("192.0.2.1", [])
    senders.take(busy, 1)
    for number in range(1000):
        senders.take(senders.name(f"10.0.{number % 250}.{number // 250}", []), 1)
        if number % 40 == 0:
            with pytest.raises(RefusedRequest):  # who is active is not forgotten
                senders.take(busy, 1)
    assert len(senders) == 50
    clock.advance(2000.0)
    senders.take(busy, 1)


def test_a_proxy_is_believed_if_it_knows_the_secret():
    senders, _ = senders_with(secret=SECRET)
    behind = senders.name("127.0.0.1", proxied("192.0.2.7"))
    assert behind == senders.name("192.0.2.7", [])
    assert behind != senders.name("127.0.0.1", proxied("192.0.2.8"))
    for forged in (
        proxied("192.0.2.7", b"another secret, of somebody"),
        [(HEADER, b"192.0.2.7")],
        [(HEADER, b"192.0.2.7 " + b"0" * 64)],
        [(HEADER, b"\xff\xfe " + b"0" * 64)],
        [(HEADER, b"")],
        [],
    ):
        assert senders.name("203.0.113.5", forged) == senders.name("203.0.113.5", [])
    # The proxy's own address is one sender, once it could have said more.
    assert senders.name("127.0.0.1", []) == senders.name("127.0.0.1", [(HEADER, b"nonsense")]) is not None


def test_without_a_secret_nobody_is_believed_and_the_machine_itself_is_not_limited():
    senders, _ = senders_with(rate=1.0, burst=1)
    assert senders.name("127.0.0.1", proxied("192.0.2.7")) is None
    assert senders.name("203.0.113.5", proxied("192.0.2.7")) == senders.name("203.0.113.5", [])
    for _ in range(10):
        senders.take(None, 1)
        senders.correct(None, 1000)
    assert len(senders) == 0


def test_a_batch_leaves_its_sender_in_debt():
    senders, clock = senders_with(rate=10.0, burst=100)
    name = senders.name("192.0.2.7", [])
    senders.take(name, 100)
    senders.correct(name, 1000)
    with pytest.raises(RefusedRequest, match="over_sender_quota: more than 10 reports per second") as refused:
        senders.take(name, 1)
    assert refused.value.wait == pytest.approx(100.1)
    clock.advance(105.2)  # a request that was refused costs something too
    senders.take(name, 1)
    senders.correct(name, -5000)  # a bucket is full at its burst
    senders.take(name, 100)
    with pytest.raises(RefusedRequest):
        senders.take(name, 1)


def test_who_goes_on_after_many_refusals_is_not_even_listened_to():
    senders, clock = senders_with(rate=10.0, burst=100)
    name = senders.name("192.0.2.7", [])
    refusals = 0
    while not senders.blocked("192.0.2.7"):
        with contextlib.suppress(RefusedRequest):
            senders.take(name, 100)
            continue
        refusals += 1
    assert refusals == 2  # and two connections
    assert not senders.blocked("192.0.2.8")
    assert not senders.blocked("127.0.0.1")
    clock.advance(60.0)
    assert not senders.blocked("192.0.2.7")
    senders.take(name, 1)


def test_a_secret_is_long_enough(tmp_path: Path):
    (tmp_path / "short").write_text("secret\n")
    with pytest.raises(InvalidValue, match="proxy secret: got '6 bytes'; allowed: at least 16 bytes"):
        read_secret(tmp_path / "short")
