"""A study of three rounds with parts: browsers, Python's clients and a real collector, which is killed on the way."""

import os
import signal
import time
from pathlib import Path

import pytest

from hubbub.authoring import load_collection
from hubbub.client import Client
from hubbub.service.store import open_store
from tests.js.tab import OpenSite, blank
from tests.js.test_browser_killed import chromium
from tests.js.test_browser_studies import PLAIN
from tests.served import ServedCollector, after
from tests.service.study_world import retold
from tests.shared.small_collections import collection_text

ROUND, LATENESS, BROWSERS, PYTHONS = 36, 3, 60, 30
TOML = collection_text(
    "study",
    "The most common words",
    schedule={"step": "1h", "lateness": f"{LATENESS}s"},
    privacy={"user": 9.0, "minimum_batch": 20},
    fields={"word": {"kind": "ordinal", "size": 8}},
    questions={
        "common": {"kind": "common", "field": "word", "epsilon": 3.0, "most": 2, "start": 0, "round_seconds": ROUND}
    },
)
SERVE = after("import tests.service.study_world")  # a kind that is a study
CROWD = """async ([options, record]) => {
  window.crowd = [];
  for (let n = 0; n < options.devices; n++) {
    const client = await open_client({ ...options, now: Date.now, database: `device ${n}` });
    if (record) await client.record("word", n % 3 === 2 ? n % 8 : 5);
    crowd.push(client);
  }
}"""
TICK = "async () => { for (const client of crowd) await client.tick(); }"


@pytest.mark.slow
def test_a_study_goes_on_whoever_is_killed(site: OpenSite, tmp_path: Path) -> None:
    # Of 90 devices two thirds hold 5. It is among the two most common of the release but with probability below 1e-4.
    start = int(time.time()) + 30
    text = TOML.replace("start = 0", f"start = {start}")
    served = ServedCollector(tmp_path, text, program=SERVE)
    page_of = site(PLAIN)
    given = {"server": served.url, "collection": "study", "keys": [served.key.hex()], "devices": BROWSERS}
    pythons = [
        Client(tmp_path / str(number), served.url, served.key, collection="study", jitter=0.0)
        for number in range(PYTHONS)
    ]
    for number, client in enumerate(pythons):
        client.record("word", number % 8 if number % 3 == 2 else 5)
    try:
        profile = tmp_path / "profile"
        for turn, number in enumerate((0, 0, 1, 2)):  # in the first round the browser is killed, and starts again
            opens = start + number * ROUND
            with chromium(profile) as (context, process):
                page = blank(context, page_of)
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
                served = ServedCollector(tmp_path, text, program=SERVE, port=served.port)
        time.sleep(max(0.0, start + 3 * ROUND + LATENESS + 2 - time.time()))
        counted = served.read("/v1/collections/study/counts")["outcomes"]
        releases = served.read("/v1/collections/study/questions/common/releases")["releases"]
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
    store = open_store(f"sqlite:///{tmp_path}/hubbub.db")
    said = retold(load_collection(text), store)
    store.close()
    assert said.estimate.value.tolist() == releases[-1]["value"]
