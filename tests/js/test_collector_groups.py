"""Browsers and Python's clients answer questions by group: one report of two fields, with rounded numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.client import Client
from hubbub.collection import ManualClock
from hubbub.core.reports import Sketch
from hubbub.mechanisms.frequency.measured import Measured
from hubbub.protocols.driver import Conversation, Release
from hubbub.service.kept.raw_reports import reports_to
from hubbub.service.store.base import EraRow
from tests.shared.in_process import InProcess

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

TOML = (Path(__file__).parents[2] / "examples" / "crashes.toml").read_text()
TOML = TOML.replace("epsilon = 1.0", "epsilon = 8.0").replace("epsilon = 14.0", "epsilon = 112.0")
TOML = TOML.replace("event = 2.0", "event = 16.0").replace("minimum_batch = 100", "minimum_batch = 20")
TOML = TOML.replace("event = 16.0", "event = 17.0").replace("epsilon = 112.0", "epsilon = 119.0")
TOML += """
[questions.table]
kind = "table"
columns = ["os", "crashed"]
measures = ["start"]
epsilon = 1.0

[override]
sent_as_it_is = "how long it takes is no secret"
"""
EACH, STEP = 10, 7
START = {"13": 2.5, "14": 10.0}
BROWSERS = """async (options) => {
  for (let n = 0; n < options.devices; n++) {
    const client = await open_client({ ...options, database: `device ${n}` });
    if (n < 9) await client.record("os", n % 2 ? "14" : "13");
    await client.record("crashed", n % 2 ? "yes" : "no");
    if (n < 8) await client.record("start", n % 2 ? 10 : 2.5);
    await client.tick();
  }
}"""


def test_both_clients_answer_and_every_release_is_what_the_protocol_says(
    context: BrowserContext, site: Callable[..., Any], tmp_path: Path
) -> None:
    """Nine of ten devices of either sort say their system, eight how long they take to start.

    At epsilon 8 a report of one of twelve cells names another once in 270 times; of two groups of ten and eight devices
    the limits leave room for two such, which chance exceeds once in a thousand times.
    """
    crashes = load_collection(TOML)
    clock = ManualClock(crashes.opens(STEP) + 1.0)
    server = InProcess(crashes, clock, tmp_path / "store.db", rng=Random(seed=1))
    home = site(crashes)
    home.collector = server
    keys = server.options["keys"]
    clock.set(crashes.opens(STEP) + crashes.lateness_seconds + 1.0)
    server.restart()
    for number in range(EACH):
        given: Any = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "crashes"}
        with Client(tmp_path / str(number), server, keys.public, rng=Random(seed=number), **given) as device:
            os = "14" if number % 2 else "13"
            if number < 9:
                device.record("os", os)
            device.record("crashed", "yes" if number % 2 else "no")
            if number < 8:
                device.record("start", START[os])
            device.tick()
            device.upload()
    page = context.new_page()
    page.goto(f"{home.url}/page")
    page.wait_for_function("() => !!window.open_client")
    page.evaluate("time => { window.time = time; }", 1000 * clock.now())
    page.evaluate(BROWSERS, {"collection": "crashes", "keys": [keys.public.hex()], "devices": EACH})
    page.close()
    assert server.collector.counts()[crashes.collection_id, "accepted"] == 3 * 2 * EACH
    clock.set(crashes.opens(STEP + 1) + crashes.lateness_seconds + 1.0)
    server.restart()
    told: dict[str, Any] = {}
    asks = server.store.closed_asks(crashes.collection_id, "table", STEP, STEP)
    kept = [reports_to(server.store, None, ask.key) for ask in asks]
    numbers = np.concatenate([Measured.numbers(reports)[:, 0] for batches in kept for reports in batches])
    assert Counter(np.nan_to_num(numbers, nan=-1.0).tolist()) == {2.5: 8, 10.0: 8, -1.0: 4}
    for question in ("crashes", "start"):
        asks = server.store.asks(EraRow(crashes.collection_id, question, STEP))
        talk = Conversation(crashes.protocol(question, first=STEP), parts=crashes.terms[question].parts)
        talk.reply_all([Sketch.from_bytes(ask.sketch) for ask in asks if ask.sketch is not None and ask.step == STEP])
        said = talk.listen()
        assert isinstance(said, Release)
        (row,) = server.store.releases(crashes.collection_id, question, 0, 99, 99)
        told[question] = json.loads(row.payload)
        assert told[question]["value"] == [None if value != value else value for value in said.estimate.value.tolist()]
        assert told[question]["n"] == 2 * EACH
    shares = dict(zip(told["crashes"]["labels"], told["crashes"]["value"], strict=True))
    assert shares["13: no"] == pytest.approx(1.0, abs=0.35)
    assert shares["14: yes"] == pytest.approx(1.0, abs=0.35)
    assert told["crashes"]["estimates"]["groups of os"]["value"][:2] == pytest.approx([0.5, 0.4], abs=0.2)
    means = dict(zip(told["start"]["labels"], told["start"]["value"], strict=True))
    assert means["13"] == pytest.approx(2.5, abs=2.5)
    assert means["14"] == pytest.approx(10.0, abs=3.0)
    server.store.close()
