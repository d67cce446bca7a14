"""`hubbub serve` as `pip install hubbub-ldp[server]` gives it: a process, and requests to it over sockets."""

import contextlib
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hubbub import Random
from hubbub.collection import open_sealed
from hubbub.collection.names import AnswerName
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from tests.shared.small_collections import THEME, collection_text

ONLY_SERVER = [sys.executable, str(Path(__file__).parent / "only_extra.py"), "server"]


def after(setup: str) -> list[str]:
    """`hubbub` in a process that has run some Python first, which may import from the tests."""
    path = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})"
    return [sys.executable, "-c", f"{path}\n{setup}\nfrom hubbub.cli import main; main()"]


THEMES = collection_text(
    "themes",
    "Light or dark?",
    schedule={"step": "2s", "lateness": "1s"},
    privacy={"event": 8.0, "minimum_batch": 20},
    fields={"theme": THEME},
    questions={"popular": {"kind": "histogram", "field": "theme", "epsilon": 4.0}},
    alarms={"dark": {"question": "popular", "weights": {"dark": 1}, "above": 0.5}},
)
"""A collection that is asked every two seconds, with an alarm about it."""

Answer = tuple[Any, Ask]


class ServedProcess:
    """A program that serves, in a process of its own, and the log that it wrote until it did."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=env)
        self.folder = folder
        self.startup_log = ""
        assert self.process.stderr is not None
        self.started: dict[str, Any] = {}
        while self.started.get("event") != "serving":
            line = self.process.stderr.readline()
            self.startup_log += line
            if not line.startswith("{"):  # it ended, or wrote something that is no line of a log
                self.process.kill()
                raise AssertionError((self.startup_log, self.process.communicate()[1], self.process.returncode))
            self.started = json.loads(line)
        self.log: list[str] = []
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()
        self.port = urlsplit(self.started["at"]).port or 0
        self.token_file = folder / "hubbub-keys" / "admin.token"
        self.token = self.token_file.read_text().strip()
        self.url = f"http://127.0.0.1:{self.port}"

    def _read(self) -> None:
        assert self.process.stderr is not None
        with contextlib.suppress(ValueError):
            self.log.extend(self.process.stderr)

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The lines of the log about an event."""
        lines = [json.loads(line) for line in (*self.startup_log.splitlines(), *self.log) if line.startswith("{")]
        return [line for line in lines if line["event"] == event]

    def get(self, path: str, *, port: int | None = None, token: bool = False) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self.token}"} if token else {}
        return requested(port or self.port, path, headers=headers)

    def read(self, path: str) -> Any:
        status, body = self.get(path, token=True)
        assert status == 200, (path, status, body)
        return json.loads(body)

    def kill(self) -> int:
        self.process.kill()
        return self.ended()

    def stop(self) -> int:
        self.process.terminate()
        return self.ended()

    def ended(self) -> int:
        """Wait for the end, and for the last line of the log."""
        code = self.process.wait(120)
        self.reading.join(60)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.stop()


class ServedCollector(ServedProcess):
    """A collector of one collection."""

    def __init__(
        self,
        folder: Path,
        text: str,
        *options: str,
        port: int = 0,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = ONLY_SERVER,
    ):
        (folder / "served.toml").write_text(text)
        command = [*program, "serve", "served.toml", "--port", str(port), "--metrics-port", "0", *options]
        super().__init__(command, folder, env)
        self.metrics = urlsplit(self.started["metrics"]).port or 0
        self.key = bytes.fromhex(self.started["public_key"])

    def answer(self, collection: str, question: str, values: Sequence[int]) -> Ask:
        """Have devices answer an open ask; on a busy machine a first try may come too late."""
        while True:
            document = open_sealed(json.loads(self.get(f"/v1/collections/{collection}/asks")[1]), self.key)
            published = next(entry for entry in document["asks"] if entry["question"] == question)
            ask = Ask.from_spec(published["ask"])
            name = AnswerName(question, published["run"], ask.step, published["round"], published["part"])
            assert isinstance(ask.mechanism, Mechanism)
            reports = ask.mechanism.randomize(list(values), Random())
            frame = encode_batch(collection, document["version"], name, Random().bytes(16 * len(values)), reports)
            receipt = json.loads(requested(self.port, "/v1/reports", frame, {"Content-Type": BATCH_TYPE})[1])
            if receipt["accepted"]:
                assert receipt == {"accepted": len(values), "duplicates": 0, "rejected": []}
                return ask


def requested(
    port: int, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, *, timeout: float = 30
) -> tuple[int, bytes]:
    """The status and the body of an answer to GET, or to POST if there is a body, on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET" if body is None else "POST", path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def wait_for(condition: Callable[[], Any], seconds: float = 120.0) -> Any:
    """The first result of a function that is not false; it is called again and again until then, for some time."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, (condition, "never held")
        time.sleep(0.05)
    return result
