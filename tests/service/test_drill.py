"""The drill: serve, collect, back up while it runs, go on, kill -9, restore elsewhere, start; it answers as it did."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.collection import open_sealed
from hubbub.collection.names import AnswerName
from hubbub.protocols.ask import Ask
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from tests.service.test_kept import KEEPING

TEXT = KEEPING.replace('step = "1h"', 'step = "2s"').replace('lateness = "10s"', 'lateness = "1s"')
COLLECTION = load_collection(TEXT)
HUBBUB = [sys.executable, "-c", "from hubbub.cli import main; main()"]
SOME = 200


class Serving:
    """`hubbub serve` in a process of its own."""

    def __init__(self, folder: Path, store: str, reports: Path) -> None:
        (folder / "words.toml").write_text(TEXT)
        self._log = (folder / f"log-{time.monotonic_ns()}").open("w+b")
        command = ["serve", "words.toml", "--port", "0", "--keys", "keys", "--reports", str(reports)]
        self.process = subprocess.Popen(
            [*HUBBUB, *command], cwd=folder, stderr=self._log, env={**os.environ, "HUBBUB_STORE": store}
        )
        self.port = 0
        self.port = until(lambda: int(re.findall(r'"at": "http://127\.0\.0\.1:(\d+)', self.log())[0]), self.log)
        self.token = (folder / "keys" / "admin.token").read_text().strip()

    def log(self) -> str:
        return Path(self._log.name).read_text()

    def request(self, path: str, body: bytes | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": BATCH_TYPE}
        try:
            connection.request("GET" if body is None else "POST", path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        assert answer.status == 200, content
        return json.loads(content)

    def released(self) -> int:
        """The latest step that was released."""
        return int(self.request("/v1/collections/words/questions/ages/releases/latest")["step"])

    def told(self, last: int) -> list[Any]:
        """All that it tells of the steps up to one."""
        questions = "/v1/collections/words/questions"
        return [
            *(self.request(f"{questions}/{name}/releases?to={last}") for name in COLLECTION.questions),
            self.request(f"{questions}/words/candidates?candidate=maybe&candidate=yes&to={last}"),
            self.request(f"{questions}/ages/candidates?candidate=7&candidate=9&to={last}"),
        ]

    def accepted(self) -> int:
        return int(self.request("/v1/collections/words/counts")["outcomes"].get("accepted", 0))

    def end(self, kill: bool) -> int:
        (self.process.kill if kill else self.process.terminate)()
        code = self.process.wait(60)
        self._log.close()
        return code


class Senders(threading.Thread):
    """Sends reports to whatever is open, until it is told to stop or nobody answers."""

    def __init__(self, serving: Serving) -> None:
        super().__init__()
        self.acknowledged = 0
        self.stopped = threading.Event()
        self._serving = serving

    def run(self) -> None:
        rng = Random(seed=5)
        while not self.stopped.is_set():
            try:
                document = self._serving.request("/v1/collections/words/asks")
                for entry in open_sealed(document, bytes.fromhex(document["key"]))["asks"]:
                    ask = Ask.from_spec(entry["ask"])
                    values = (["maybe", "yes"] if entry["question"] == "words" else [7, 9]) * (SOME // 2)
                    reports = ask.mechanism.randomize(values, rng)
                    name = AnswerName(entry["question"], entry["run"], ask.step, entry["round"], entry["part"])
                    frame = encode_batch(COLLECTION.name, COLLECTION.version, name, rng.bytes(16 * SOME), reports)
                    self.acknowledged += self._serving.request("/v1/reports", frame)["accepted"]
            except (OSError, http.client.HTTPException):
                return  # killed
            time.sleep(0.05)


def until(act: Callable[[], Any], log: Callable[[], str] = lambda: "") -> Any:
    """What it returns once it does not fail; for a minute at most."""
    for _ in range(600):
        try:
            return act()
        except (AssertionError, IndexError, OSError):
            time.sleep(0.1)
    raise AssertionError(log())


def run(folder: Path, *command: str, store: str) -> str:
    env = {**os.environ, "HUBBUB_STORE": store}
    done = subprocess.run([*HUBBUB, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_the_drill(tmp_path: Path, kind: str, postgres: Callable[[], str]):
    store, again = ("sqlite:///hubbub.db", "sqlite:///again.db") if kind == "sqlite" else (postgres(), postgres())
    serving = Serving(tmp_path, store, tmp_path / "reports")
    senders = Senders(serving)
    senders.start()
    try:
        begun = until(serving.released)
        last = until(lambda: heard(serving, later(serving.released(), begun)))
        before, least = serving.told(last), senders.acknowledged
        assert "backed up to saved" in run(tmp_path, "backup", "saved", "--reports", "reports", store=store)
        most = senders.acknowledged + 4 * SOME  # and what was on its way
        until(lambda: later(serving.released(), last))
    finally:
        serving.end(kill=True)
        senders.stopped.set()
        senders.join()
    assert "saved is whole" in run(tmp_path, "restore", "saved", "--check", store=again)
    run(tmp_path, "restore", "saved", "--reports", "reports again", store=again)
    serving = Serving(tmp_path, again, tmp_path / "reports again")
    try:
        assert serving.told(last) == before
        assert least <= serving.accepted() <= most
        assert "reports missing" not in serving.log()
        assert "set aside" not in serving.log()
        now = serving.accepted()
        senders = Senders(serving)
        senders.start()
        until(lambda: later(serving.accepted(), now))
        senders.stopped.set()
        senders.join()
    finally:
        assert serving.end(kill=False) == 0


def heard(serving: Serving, last: int) -> int:
    assert serving.told(last)[-1]["n"] > 0  # on a busy machine the first steps may end before anyone sent
    return last


def later(number: int, than: int) -> int:
    assert number > than
    return number
