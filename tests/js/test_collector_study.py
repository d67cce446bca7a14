"""A study of three rounds with parts: browsers, Python's clients and a real collector, which is killed on the way."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import load_collection
from hubbub.client import Client
from hubbub.service.store import open_store
from tests.js.test_browser_killed import chromium
from tests.js.test_browser_studies import PLAIN

HERE = Path(__file__).parent
ROUND, LATENESS, BROWSERS, PYTHONS = 36, 3, 60, 30
TOML = """
name = "study"
version = 1
title = "The most common words"

[schedule]
step = "1h"
lateness = "LATENESSs"

[privacy]
user = 9.0
minimum_batch = 20

[fields.word]
kind = "ordinal"
size = 8

[questions.common]
kind = "common"
field = "word"
epsilon = 3.0
most = 2
start = START
round_seconds = ROUND
"""
KIND = "import tests.service.study_world"  # a kind that is a study
SERVE = f"{KIND}; import typer; from hubbub.cli.serve import serve; typer.run(serve)"
CROWD = """async ([options, record]) => {
  window.crowd = [];
  for (let n = 0; n < options.devices; n++) {
    const client = await open_client({ ...options, now: Date.now, database: `device ${n}` });
    if (record) await client.record("word", n % 3 === 2 ? n % 8 : 5);
    crowd.push(client);
  }
}"""
TICK = "async () => { for (const client of crowd) await client.tick(); }"


class Served:
    """A collector of its own process on one port, which may be killed and started again."""

    def __init__(self, folder: Path, file: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder, self.file, self.starts = folder, file, 0
        self.start()

    def start(self) -> None:
        said = self.folder / f"collector {self.starts}.txt"
        self.starts += 1
        options = ["--port", str(self.port), "--keys", str(self.folder / "keys")]
        options += ["--store", f"sqlite:///{self.folder}/store.db"]
        with said.open("w") as output:
            command = [sys.executable, "-u", "-c", SERVE, str(self.file), *options]
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        while not (found := re.search(r'"public_key": "([^"]+)"', said.read_text(encoding="utf-8"))):
            assert self.process.poll() is None, said.read_text(encoding="utf-8")
            time.sleep(0.05)
        self.key = found[1]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def get(self, path: str) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/collections/study/{path}")
        token = (self.folder / "keys" / "admin.token").read_text(encoding="utf-8").strip()
        request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


@pytest.mark.slow
def test_a_study_goes_on_whoever_is_killed(site: Callable[..., Any], tmp_path: Path) -> None:
    # Of 90 devices two thirds hold 5. It is among the two most common of the release but with probability below 1e-4.
    start = int(time.time()) + 30
    file = tmp_path / "study.toml"
    text = TOML.replace("LATENESS", str(LATENESS)).replace("START", str(start)).replace("ROUND", str(ROUND))
    file.write_text(text, encoding="utf-8")
    served = Served(tmp_path, file)
    page_of = site(PLAIN)
    options = {"server": f"http://127.0.0.1:{served.port}", "collection": "study", "keys": [served.key]}
    given = {**options, "devices": BROWSERS}
    pythons = [
        Client(tmp_path / str(number), options["server"], served.key, collection="study", jitter=0.0)
        for number in range(PYTHONS)
    ]
    for number, client in enumerate(pythons):
        client.record("word", number % 8 if number % 3 == 2 else 5)
    try:
        profile = tmp_path / "profile"
        for turn, number in enumerate((0, 0, 1, 2)):  # in the first round the browser is killed, and starts again
            opens = start + number * ROUND
            with chromium(profile) as (context, process):
                page = context.new_page()
                page.goto(f"{page_of.url}/page")
                page.wait_for_function("() => !!window.open_client")
                page.evaluate(CROWD, [given, turn == 0])
                # Every round but the first is asked when late answers to the one before have come.
                time.sleep(max(0.0, opens + (LATENESS + 1.5 if number else 0.3) - time.time()))
                if turn:
                    page.evaluate(TICK)
                else:
                    page.evaluate(f"() => {{ ({TICK})(); return new Promise(done => setTimeout(done, 150)); }}")
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            if turn:
                for client in pythons:
                    client.tick()
                    client.upload()
                assert time.time() < opens + ROUND, "the machine is too slow for this test"
                served.kill()
                served.start()
        time.sleep(max(0.0, start + 3 * ROUND + LATENESS + 2 - time.time()))
        counted = served.get("counts")["outcomes"]
        releases = served.get("questions/common/releases")["releases"]
        assert not releases[-1].get("stopped"), releases
        # Every device is on the arc of one round, and its answer was counted once.
        assert counted["accepted"] == BROWSERS + PYTHONS
        assert set(counted) <= {"accepted", "duplicate"}
        assert "5" in releases[-1]["labels"]
        assert all(client.status().counts == {"sent": 1} for client in pythons)
    finally:
        for client in pythons:
            client.close()
        served.kill()
    from tests.service.study_world import retold

    store = open_store(f"sqlite:///{tmp_path}/store.db")
    said = retold(load_collection(text), store)
    store.close()
    assert said.estimate.value.tolist() == releases[-1]["value"]
