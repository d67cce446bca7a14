"""The drill: serve, collect, back up while it runs, go on, kill -9, restore elsewhere, start; it answers as it did."""

import http.client
import json
import os
import subprocess
import threading
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
from tests.served import ServedCollector, requested, wait_for
from tests.service.process import HUBBUB
from tests.service.test_kept import KEEPING
from tests.shared.in_process import randomized

TEXT = KEEPING.replace('step = "1h"', 'step = "2s"').replace('lateness = "10s"', 'lateness = "1s"')
COLLECTION = load_collection(TEXT)
SOME = 200


class Serving(ServedCollector):
    """`hubbub serve` in a process of its own, over a store and a folder of reports."""

    def __init__(self, folder: Path, store: str, reports: Path) -> None:
        env = {**os.environ, "HUBBUB_STORE": store}
        super().__init__(folder, TEXT, "--reports", str(reports), env=env, program=HUBBUB)

    def released(self) -> int:
        """The latest step that was released; 0 before there is one."""
        status, body = self.get("/v1/collections/words/questions/ages/releases/latest", token=True)
        return int(json.loads(body)["step"]) if status == 200 else 0

    def told(self, last: int) -> list[Any]:
        """All that it tells of the steps up to one."""
        paths = [f"{name}/releases?to={last}" for name in COLLECTION.questions]
        paths += [f"words/candidates?candidate=maybe&candidate=yes&to={last}"]
        paths += [f"ages/candidates?candidate=7&candidate=9&to={last}"]
        return [self.read(f"/v1/collections/words/questions/{path}") for path in paths]

    def accepted(self) -> int:
        return int(self.read("/v1/collections/words/counts")["outcomes"].get("accepted", 0))


class Senders(threading.Thread):
    """Sends reports to whatever is open, until it is told to stop or nobody answers."""

    def __init__(self, serving: Serving) -> None:
        super().__init__()
        self.acknowledged = 0
        self.stopped = threading.Event()
        self._serving = serving
        self.start()

    def run(self) -> None:
        rng = Random(seed=5)
        while not self.stopped.wait(0.05):
            try:
                document = self._serving.read("/v1/collections/words/asks")
                for entry in open_sealed(document, bytes.fromhex(document["key"]))["asks"]:
                    ask = Ask.from_spec(entry["ask"])
                    values = (["maybe", "yes"] if entry["question"] == "words" else [7, 9]) * (SOME // 2)
                    name = AnswerName(entry["question"], entry["run"], ask.step, entry["round"], entry["part"])
                    reports, ids = randomized(ask, values, rng), rng.bytes(16 * SOME)
                    frame = encode_batch(COLLECTION.name, COLLECTION.version, name, ids, reports)
                    _, body = requested(self._serving.port, "/v1/reports", frame, {"Content-Type": BATCH_TYPE})
                    self.acknowledged += json.loads(body).get("accepted", 0)  # none if it is busy
            except (OSError, http.client.HTTPException):
                return  # killed

    def stop(self) -> None:
        self.stopped.set()
        self.join()


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
    try:
        # On a busy machine the first steps may end before anyone sent.
        last = wait_for(lambda: (step := serving.released()) and serving.told(step)[-1]["n"] > 0 and step)
        before, least = serving.told(last), senders.acknowledged
        assert "backed up to saved" in run(tmp_path, "backup", "saved", "--reports", "reports", store=store)
        most = senders.acknowledged + 4 * SOME  # and what was on its way
        wait_for(lambda: serving.released() > last)
    finally:
        serving.kill()
        senders.stop()
    assert "saved is whole" in run(tmp_path, "restore", "saved", "--check", store=again)
    run(tmp_path, "restore", "saved", "--reports", "reports again", store=again)
    serving = Serving(tmp_path, again, tmp_path / "reports again")
    try:
        assert serving.told(last) == before
        now = serving.accepted()
        assert least <= now <= most
        senders = Senders(serving)
        wait_for(lambda: serving.accepted() > now)
        senders.stop()
    finally:
        assert serving.stop() == 0
    log = serving.startup_log + "".join(serving.log)
    assert "reports missing" not in log
    assert "set aside" not in log
