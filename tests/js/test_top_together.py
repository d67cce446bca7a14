"""The most common word of Python's clients and of browsers, in one study: it is one word, and nobody pays twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub import Random, Strings
from hubbub.client import Client
from hubbub.collection import ManualClock
from tests.questions.top_world import START, top_collection
from tests.shared.in_process import InProcess

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

EACH = 16
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


def test_what_browsers_have_in_nfd_and_python_in_nfc_is_one_word(
    context: BrowserContext, site: Callable[..., Any], tmp_path: Path
) -> None:
    words = {"word": Strings(longest=3)}  # in NFD, as browsers have it
    collection = top_collection(epsilon=8.0, k=1, fields=words, longest=2, query_limit=1 << 17, every="2h")
    assert collection.terms["words"].parts == 1
    clock = ManualClock(START + 1.0)
    server = InProcess(collection, clock, tmp_path / "store.db", rng=Random(seed=1))
    home = site(collection)
    home.collector = server
    keys = server.options["keys"]
    for number in range(EACH):
        given: Any = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "words"}
        with Client(tmp_path / str(number), server, keys.public, **given) as device:
            device.record("word", "\u00e9")
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
    # About 16 of 32 reports support it, and any other text at most 2: otherwise with a probability below 1e-6.
    assert told["labels"] == ["\u00e9"]
    assert told["value"][0] > 0.2
    server.store.close()
