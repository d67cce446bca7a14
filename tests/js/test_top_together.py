"""The most common words of Python's clients and of browsers, in one study: both are found, and nobody pays twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from in_process import InProcess
from tests.questions.top_world import START, top_collection

from hubbub import Random, Strings
from hubbub.client import Client
from hubbub.collection import ManualClock

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

EACH = 12
"""Devices of either sort: together more than a release needs."""
BROWSERS = """async ([options]) => {
  for (let n = 0; n < options.devices; n++) {
    const client = await open_client({ ...options, database: `device ${n}` });
    await client.record("word", "e\\u0301");
    await client.tick();
    await client.record("word", "no");
    await client.tick();
  }
}"""


def test_browsers_and_python_find_each_others_words(
    context: BrowserContext, site: Callable[..., Any], tmp_path: Path
) -> None:
    words = {"word": Strings(longest=3)}
    collection = top_collection(epsilon=8.0, k=2, fields=words, query_limit=1 << 24, every="2h")
    assert collection.terms["words"].parts == 1
    clock = ManualClock(START + 1.0)
    server = InProcess(collection, clock, tmp_path / "store.db", rng=Random(seed=1))
    home = site(collection)
    home.collector = server
    keys = server.options["keys"]
    for number in range(EACH):
        given: Any = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "words"}
        with Client(tmp_path / str(number), server, keys.public, **given) as device:
            device.record("word", "\u00e9" if number % 3 else "bub")  # in NFC what browsers have in NFD
            device.tick()
            device.upload()
    page = context.new_page()
    page.goto(f"{home.url}/page")
    page.wait_for_function("() => !!window.open_client")
    page.evaluate("time => { window.time = time; }", 1000 * clock.now())
    page.evaluate(BROWSERS, [{"collection": "words", "keys": [keys.public.hex()], "devices": EACH}])
    page.close()
    assert server.collector.counts()[collection.collection_id, "accepted"] == 2 * EACH
    clock.set(START + 3600 + 11.0)
    server.collector.tick()
    (row,) = server.store.releases(collection.collection_id, "words", 0, 99, 99)
    told = json.loads(row.payload)
    assert told["labels"] == ["\u00e9", "bub"]
    assert told["value"][0] > 0.6
    server.store.close()
