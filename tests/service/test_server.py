"""`hubbub serve` as it is run: a process, sockets, signals."""

import http.client
import json
import os
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hubbub import Random
from hubbub.collection.names import AnswerName
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload
from tests.served import ServedCollector, ServedProcess, requested, wait_for
from tests.service.exact_world import EXACT, exact_collection
from tests.service.process import COLLECTION, HUBBUB, ask_at, exact_process, stored
from tests.service.test_kill import LARGEST, SENDERS, Fleet
from tests.service.web import THEMES


class Served(ServedCollector):
    """A collector whose steps last two seconds."""

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder, THEMES.replace('"100s"', '"2s"').replace('"10s"', '"1s"'), *options)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    made.close()


def test_a_day_in_two_seconds(served: Served):
    """Fetch, answer, upload, hear of the release, read it."""
    listening = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    listening.request("GET", "/v1/collections/themes/events", headers={"Authorization": f"Bearer {served.token}"})
    events = listening.getresponse()
    assert events.headers["content-type"].startswith("text/event-stream")
    ask = served.answer("themes", "popular", [0] * 30 + [1] * 30)
    heard: dict[str, list[Any]] = {"counts": [], "ask": [], "release": []}
    while {"question": "popular", "step": ask.step} not in heard["release"]:
        line = events.readline().decode()
        if line.startswith("event: "):
            name = line.removeprefix("event: ").strip()
            heard[name].append(json.loads(events.readline().decode().removeprefix("data: ")))
    listening.close()
    assert any(told.get("accepted") == 60 for told in heard["counts"])
    assert {"question": "popular", "step": ask.step + 1} in heard["ask"]
    status, body = served.get("/v1/collections/themes/questions/popular/releases", token=True)
    release = next(row for row in json.loads(body)["releases"] if row["step"] == ask.step)
    assert (status, release["n"], release["withheld"]) == (200, 60, None)
    status, body = served.get("/metrics", port=served.metrics)
    assert b'hubbub_reports_total{collection="themes",outcome="accepted"} 60.0\n' in body
    assert served.get("/metrics")[0] == 404
    assert served.get("/", token=True)[0] in (200, 307)  # the dashboard
    assert served.stop() == 0
    assert json.loads(served.log[-1])["event"] == "stopped"


def test_keys_are_made_once_and_for_their_owner_alone(tmp_path: Path):
    first = Served(tmp_path)
    assert first.stop() == 0
    folder = tmp_path / "hubbub-keys"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("signing.key", "admin.token"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    second = Served(tmp_path)
    assert second.stop() == 0
    assert first.key == second.key
    assert first.token == second.token


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nothing.toml"], "nothing.toml: No such file"),
        (["themes.toml", "--port", "99999"], "--port"),
        (["themes.toml", "--store", "mysql://here"], "store: got 'mysql://...'; allowed: sqlite:///path"),
        (["themes.toml", "themes.toml"], "with different names"),
        (["themes.toml", "--store", "sqlite:///no/such/folder.db"], "no/such/folder.db"),
    ],
)
def test_what_it_cannot_serve_is_said_in_a_line(tmp_path: Path, options: list[str], message: str):
    port = [] if "--port" in options else ["--port", "0"]
    assert message in refusal(tmp_path, *options, *port)


def refusal(folder: Path, *options: str) -> str:
    """What `hubbub serve` says that does not begin."""
    (folder / "themes.toml").write_text(THEMES)
    done = subprocess.run([*HUBBUB, "serve", *options], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_port_that_is_taken_is_said_and_the_store_is_not_touched(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "in use" in refusal(tmp_path, "themes.toml", "--port", str(taken.getsockname()[1]))
    assert not (tmp_path / "hubbub.db").exists()


# -- an orderly end, and a disorderly one ----------------------------------------------------------------------


def frame(ask: AnswerName, number: int) -> bytes:
    entry = Entry(*ask, number.to_bytes(16, "big"), EXACT.randomize([number % 100], Random(seed=0)).to_bare())
    return encode_upload(COLLECTION.name, COLLECTION.version, [entry], COLLECTION.frame_bytes)


def test_told_to_stop_it_answers_what_it_has_begun(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'store.db'}"
    process = exact_process(store, tmp_path)
    fleet = Fleet(process.port)
    wait_for(lambda: fleet.acknowledged.sum() > 500)
    fleet.given_up.set()  # once it does not answer
    assert process.stop() == 0
    fleet.stop()
    # What was acknowledged is there; of what was not, at most the one request of each sender that was under way.
    assert 0 <= stored(store).n - fleet.acknowledged.sum() <= SENDERS * LARGEST
    assert process.logged("stopped")
    assert not (tmp_path / "store.db-wal").exists()  # the store was closed


def closing(port: int) -> bool:
    """Whether nobody listens there any more."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
    except OSError:
        return True
    return False


def test_a_request_that_is_under_way_is_finished(tmp_path: Path):
    process = exact_process(f"sqlite:///{tmp_path / 'store.db'}", tmp_path)
    body = frame(ask_at(process.port), 7)
    with socket.create_connection(("127.0.0.1", process.port), timeout=30) as connection:
        head = ["POST /v1/reports HTTP/1.1", "Host: x", f"Content-Type: {UPLOAD_TYPE}", f"Content-Length: {len(body)}"]
        connection.sendall("\r\n".join([*head, "Expect: 100-continue", "", ""]).encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")  # it reads the body now
        connection.sendall(body[:100])
        process.process.terminate()
        wait_for(lambda: closing(process.port))  # the signal has come
        connection.sendall(body[100:])
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    assert b'"accepted":1' in answer
    assert process.ended() == 0


def test_those_who_listen_are_let_go(tmp_path: Path):
    process = exact_process(f"sqlite:///{tmp_path / 'store.db'}", tmp_path)
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=30)
    connection.request("GET", "/v1/collections/exact/events", headers={"Authorization": f"Bearer {process.token}"})
    events = connection.getresponse()
    assert events.readline() == b": hello\n"
    process.process.terminate()
    while events.readline():  # until the end
        pass
    connection.close()
    assert process.ended() == 0
    assert not any("Cancel" in line for line in process.log)


def test_a_second_collector_takes_over_and_the_first_ends(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'store.db'}"
    first = exact_process(store, tmp_path)
    ask = ask_at(first.port)
    assert post(first, frame(ask, 1)) == (200, 1)
    second = exact_process(store, tmp_path)
    status, _ = post(first, frame(ask, 2))
    assert status == 503
    assert first.ended() == 1
    assert any("another collector has taken over" in line for line in first.log)
    assert post(second, frame(ask, 2)) == (200, 1)
    assert second.stop() == 0
    assert stored(store).n == 2


def post(process: ServedProcess, body: bytes) -> tuple[int, int]:
    status, answer = requested(process.port, "/v1/reports", body, {"Content-Type": UPLOAD_TYPE})
    return status, json.loads(answer).get("accepted", 0)


# -- a clock that is moved while it runs, restarts, or is killed: devices that know the time are heard ---------

SHORT = exact_collection(step=2, lateness=1)
DAY = 86400.0
SURE = {"ready": True, "not_ready": {}, "clock": {"state": "sure"}}
LATER = [(2, False), (-2, True), (3 * 365, False), (3 * 365, True)]


class Clocked:
    """The process, its clock, and a device whose own clock is right."""

    def __init__(self, folder: Path, hold: float) -> None:
        self.folder, self.hold = folder, hold
        self.offset = folder / "offset"
        self.move(0.0)
        self.start()

    def move(self, seconds: float) -> None:
        made = self.offset.with_suffix(".new")
        made.write_text(str(seconds))
        os.replace(made, self.offset)

    def start(self) -> None:
        store = f"sqlite:///{self.folder / 'store.db'}"
        self.process = exact_process(store, self.folder, "clock", str(self.offset), str(self.hold))

    def get(self, path: str) -> str:
        return self.process.get(path)[1].decode()

    def ready(self) -> Any:
        return json.loads(self.get("/readyz"))

    def page(self) -> str:
        return self.get("/privacy/exact")

    def document(self) -> Any:
        return json.loads(json.loads(self.get("/v1/collections/exact/asks"))["payload"])

    def asked_step(self) -> int:
        return int(self.document()["step"])

    def hear(self) -> bool:
        """Whether a report to the ask of the true step is counted. A busy collector asks for it again later."""
        document = self.document()
        step = SHORT.step_at(time.time())
        asked = next((item["ask"] for item in document["asks"] if item["ask"]["step"] == step), None)
        if asked is None:
            return False
        name = AnswerName("all", 0, step, 1, 0)
        frame = encode_batch(SHORT.name, 1, name, Random().bytes(16), EXACT.randomize([7], Random()))
        _, receipt = requested(self.process.port, "/v1/reports", frame, {"Content-Type": BATCH_TYPE})
        return bool(json.loads(receipt).get("accepted") == 1)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[[float], Clocked]]:
    running: list[Clocked] = []

    def make(hold: float) -> Clocked:
        running.append(Clocked(tmp_path, hold))
        return running[-1]

    yield make
    for clocked in running:
        clocked.process.close()


@pytest.mark.parametrize("days", [40, -40])
def test_a_jump_in_doubt_is_said_everywhere_and_collection_goes_on(made: Callable[[float], Clocked], days: int):
    clocked = made(300.0)
    wait_for(clocked.hear)
    wait_for(lambda: clocked.ready() == SURE)
    clocked.move(days * DAY)
    clock = wait_for(lambda: (told := clocked.ready()["clock"])["state"] == "in doubt" and told)
    assert clock["ahead_seconds"] == pytest.approx(days * DAY, abs=60)
    assert 0 < clock["seconds_left"] <= 300
    for _ in range(2):
        wait_for(clocked.hear)
    assert "The clock is in doubt" in clocked.page()
    assert clocked.process.kill() != 0
    clocked.start()  # in doubt still: the boot is the same
    assert clocked.ready()["clock"]["state"] == "in doubt"
    wait_for(clocked.hear)
    clocked.move(0.0)
    wait_for(lambda: clocked.ready()["clock"]["state"] == "sure")
    wait_for(clocked.hear)
    wait_for(lambda: clocked.process.logged("clock in doubt") and clocked.process.logged("clock sure"))
    assert "The clock is in doubt" not in clocked.page()


@pytest.mark.parametrize(
    ("days", "killed"), [(2, True), (-2, False), *(pytest.param(*given, marks=pytest.mark.slow) for given in LATER)]
)
def test_a_jump_that_was_accepted_is_undone(made: Callable[[float], Clocked], days: int, killed: bool):
    clocked = made(1.5)
    wait_for(clocked.hear)
    clocked.move(days * DAY)
    wait_for(lambda: clocked.ready()["clock"]["state"] == "moved")
    assert "The clock has moved" in clocked.page()
    accepted = wait_for(lambda: clocked.process.logged("clock accepted"))[0]
    assert accepted["going_by"] != accepted["instead_of"]
    # It asks in the wrong time.
    wait_for(lambda: abs(clocked.asked_step() - SHORT.step_at(time.time() + days * DAY)) <= 2)
    if killed:
        clocked.process.kill()
    clocked.move(0.0)
    if killed:
        clocked.start()
    wait_for(clocked.hear)
    wait_for(lambda: clocked.ready() == SURE)
    wait_for(lambda: clocked.process.logged("clock returned"))
