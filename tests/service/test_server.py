"""`hubbub serve` as it is run: a process, sockets, signals."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hubbub import Random
from hubbub.cli import main
from hubbub.collection.names import AnswerName
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload
from tests.served import ONLY_SERVER, ServedCollector, wait_for
from tests.service.exact_world import EXACT, exact_collection
from tests.service.process import Process, exact_process
from tests.service.test_kill import ask_of, stored
from tests.service.web import THEMES

HUBBUB = [sys.executable, "-c", "from hubbub.cli import main; main()"]
COLLECTION = exact_collection(step=86400, lateness=3600)


class Served(ServedCollector):
    """A collector whose steps last two seconds."""

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder, THEMES.replace('"100s"', '"2s"').replace('"10s"', '"1s"'), *options)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    if made.process.poll() is None:
        made.stop()


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
    release = next(one for one in json.loads(body)["releases"] if one["step"] == ask.step)
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
    ],
)
def test_a_bad_beginning_is_said_in_a_line(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    (tmp_path / "themes.toml").write_text(THEMES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hubbub.service.base.logs.set_up", lambda: None)  # the log of this process stays as it is
    monkeypatch.setattr(sys, "argv", ["hubbub", "serve", *options, *([] if "--port" in options else ["--port", "0"])])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--store", "mysql://here"], "store: got 'mysql://...'; allowed: sqlite:///path"),
        (["themes.toml"], "with different names"),
        (["--store", "sqlite:///no/such/folder.db"], "no/such/folder.db"),
    ],
)
def test_what_it_cannot_serve_is_said_in_a_line(tmp_path: Path, options: list[str], message: str):
    """In a process of its own: by then it has a port and a log."""
    (tmp_path / "themes.toml").write_text(THEMES)
    command = [*HUBBUB, "serve", "themes.toml", "--port", "0", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_said_and_the_store_is_not_touched(tmp_path: Path):
    (tmp_path / "themes.toml").write_text(THEMES)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [*ONLY_SERVER, "serve", "themes.toml", "--port", str(taken.getsockname()[1])]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "in use" in done.stderr) == (2, True)
    assert not (tmp_path / "hubbub.db").exists()


# -- an orderly end, and a disorderly one ----------------------------------------------------------------------


def frame(ask: AnswerName, number: int) -> bytes:
    entry = Entry(*ask, number.to_bytes(16, "big"), EXACT.randomize([number % 100], Random(seed=0)).to_bare())
    return encode_upload(COLLECTION.name, COLLECTION.version, [entry], COLLECTION.frame_bytes)


def test_told_to_stop_it_answers_what_it_has_begun(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'store.db'}"
    process = exact_process(store, tmp_path)
    ask = ask_of(process)
    acknowledged = [0] * 8

    def send(number: int) -> None:
        connection = process.connect()
        with contextlib.suppress(OSError, http.client.HTTPException):
            for count in range(100_000):
                body = frame(ask, 1_000_000 * number + count)
                connection.request("POST", "/v1/reports", body, {"Content-Type": UPLOAD_TYPE})
                answer = connection.getresponse()
                if answer.status != 200:
                    break
                acknowledged[number] += json.loads(answer.read())["accepted"]
        connection.close()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    wait_for(lambda: sum(acknowledged) > 8)
    assert process.stop() == 0
    for thread in threads:
        thread.join()
    # What was acknowledged is there; of what was not, at most the one request of each sender that was under way.
    assert 0 <= stored(store).n - sum(acknowledged) <= 8
    assert any('"event": "stopped"' in line for line in process.log)
    assert not (tmp_path / "store.db-wal").exists()  # the store was closed


def test_a_request_that_is_under_way_is_finished(tmp_path: Path):
    process = exact_process(f"sqlite:///{tmp_path / 'store.db'}", tmp_path)
    body = frame(ask_of(process), 7)
    with socket.create_connection(("127.0.0.1", process.port), timeout=30) as connection:
        head = ["POST /v1/reports HTTP/1.1", "Host: x", f"Content-Type: {UPLOAD_TYPE}", f"Content-Length: {len(body)}"]
        connection.sendall("\r\n".join([*head, "Expect: 100-continue", "", ""]).encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")  # it reads the body now
        connection.sendall(body[:100])
        process.process.terminate()
        time.sleep(0.5)
        connection.sendall(body[100:])
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    assert b'"accepted":1' in answer
    assert process.close() == 0


def test_those_who_listen_are_let_go(tmp_path: Path):
    process = exact_process(f"sqlite:///{tmp_path / 'store.db'}", tmp_path)
    token = (tmp_path / "keys" / "admin.token").read_text().strip()
    connection = process.connect()
    connection.request("GET", "/v1/collections/exact/events", headers={"Authorization": f"Bearer {token}"})
    events = connection.getresponse()
    assert events.readline() == b": hello\n"
    process.process.terminate()
    while events.readline():  # until the end
        pass
    connection.close()
    assert process.close() == 0
    assert not any("Cancel" in line for line in process.log)


def test_a_second_collector_takes_over_and_the_first_ends(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'store.db'}"
    first = exact_process(store, tmp_path)
    ask = ask_of(first)
    assert post(first, frame(ask, 1)) == (200, 1)
    second = exact_process(store, tmp_path)
    status, _ = post(first, frame(ask, 2))
    assert status == 503
    assert first.close() == 1
    assert any("another collector has taken over" in line for line in first.log)
    assert post(second, frame(ask, 2)) == (200, 1)
    assert second.stop() == 0
    assert stored(store).n == 2


def post(process: Process, body: bytes) -> tuple[int, int]:
    connection = process.connect()
    try:
        connection.request("POST", "/v1/reports", body, {"Content-Type": UPLOAD_TYPE})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()).get("accepted", 0)
    finally:
        connection.close()
