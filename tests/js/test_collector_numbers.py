"""Browsers and Python's clients answer questions about a number: what is released is what the protocol says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.client import Client
from hubbub.collection import ManualClock
from hubbub.core.reports import Sketch
from hubbub.protocols.driver import Conversation, Release
from hubbub.service.store.base import EraRow
from tests.shared.in_process import InProcess
from tests.shared.small_collections import collection_text

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

TOML = collection_text(
    "rides",
    "Taxi rides",
    privacy={"event": 12.0, "minimum_batch": 20},
    fields={"fare": {"kind": "numeric", "low": 0.0, "high": 500.0, "cells": 50}},
    questions={
        "fares": {"kind": "release", "field": "fare", "epsilon": 6.0, "r": 3, "every": 1},
        "spread": {"kind": "distribution", "field": "fare", "epsilon": 6.0},
    },
)
EACH, STEPS, FIRST = 10, 2, 7
"""Devices of either sort, and steps."""
FARE = 12.0
BROWSERS = """async (options) => {
  for (let n = 0; n < options.devices; n++) {
    const client = await open_client({ ...options, database: `device ${n}` });
    await client.record("fare", options.fare);
    await client.tick();
  }
}"""


def test_both_clients_answer_and_every_release_is_what_the_protocol_says(
    context: BrowserContext, site: Callable[..., Any], tmp_path: Path
) -> None:
    """A release searches, and then clips on the device; its collector begins again in every step.

    The clipped mean of about 18 reports at epsilon 6 has a standard error of 3% of the threshold: six of them, and
    some more, are allowed, which chance exceeds once in a billion times.
    """
    rides = load_collection(TOML)
    clock = ManualClock(rides.opens(FIRST) + 1.0)
    server = InProcess(rides, clock, tmp_path / "store.db", rng=Random(seed=1))
    home = site(rides)
    home.collector = server
    keys = server.options["keys"]
    options = {"collection": "rides", "keys": [keys.public.hex()], "devices": EACH, "fare": FARE}
    for step in range(FIRST, FIRST + STEPS):
        clock.set(rides.opens(step) + rides.lateness_seconds + 1.0)
        server.restart()
        for number in range(EACH):
            given: Any = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "rides"}
            with Client(tmp_path / str(number), server, keys.public, **given) as device:
                device.record("fare", FARE)
                device.tick()
                device.upload()
        page = context.new_page()
        page.goto(f"{home.url}/page")
        page.wait_for_function("() => !!window.open_client")
        page.evaluate("time => { window.time = time; }", 1000 * clock.now())
        page.evaluate(BROWSERS, options)
        page.close()
        # Everyone answers both questions.
        assert server.collector.counts()[rides.collection_id, "accepted"] == 4 * EACH * (step - FIRST + 1)
    clock.set(rides.opens(FIRST + STEPS) + rides.lateness_seconds + 1.0)
    server.restart()
    for question in rides.questions:
        era = EraRow(rides.collection_id, question, FIRST)
        sketches = [Sketch.from_bytes(ask.sketch) for ask in server.store.asks(era) if ask.sketch is not None]
        talk = Conversation(rides.protocol(question, first=FIRST), parts=rides.terms[question].parts)
        rows = server.store.releases(rides.collection_id, question, 0, 99, 99)
        assert [row.step for row in rows] == list(range(FIRST, FIRST + STEPS))
        for row in rows:
            (_, clipped) = talk.asks[-1].view.range or (0.0, 0.0)
            talk.reply_all([sketches.pop(0) for _ in talk.asks])
            said, told = talk.listen(), json.loads(row.payload)
            assert isinstance(said, Release)
            assert told["n"] == said.n == 2 * EACH
            for name, estimate in said.estimates.items():
                told_of = told if name == "estimate" else told["estimates"][name]
                assert told_of["value"] == estimate.value.tolist()
        if question == "fares":
            assert clipped < 100
            assert told["value"][0] == pytest.approx(min(FARE, clipped), abs=clipped / 4)
    server.store.close()
