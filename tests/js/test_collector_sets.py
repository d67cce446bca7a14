"""Browsers and Python's clients tell which items they hold: the shares that are released are those of their reports."""

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
from hubbub.service.store.base import EraRow
from tests.shared.in_process import InProcess
from tests.shared.small_collections import collection_text

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

TOML = collection_text(
    "editor",
    "Features of an editor",
    privacy={"event": 60.0, "minimum_batch": 20},
    override={"epsilon_above_8": "a few devices"},
    fields={
        "features": {
            "kind": "sets",
            "most": 3,
            "items": {"kind": "categorical", "names": ["bold", "table", "link", "image", "undo"]},
        }
    },
    questions={
        "used": {"kind": "histogram", "field": "features", "epsilon": 12.0},
        "sampled": {"kind": "histogram", "field": "features", "epsilon": 12.0, "mechanism": "PSFO"},
        "bits": {"kind": "histogram", "field": "features", "epsilon": 12.0, "mechanism": "SplitUnary"},
    },
)
EACH, STEP = 20, 7
REACH = {"used": 0.1, "sampled": 1.3, "bits": 0.4}
"""How far a share may be off. Standard errors of 40 reports are at most 0.002, 0.22 and 0.056; a false item of PrivSet
moves a share by 0.025, with probability 0.006. Of the 15 shares, one is further off in less than 1 in 100,000 runs."""
BROWSERS = """async (options) => {
  for (let n = 0; n < options.devices; n++) {
    const client = await open_client({ ...options, database: `device ${n}` });
    if (n) await client.record("features", n % 2 ? ["link", "bold"] : ["undo", "bold"]);
    await client.tick();
  }
}"""


def test_both_clients_tell_which_items_they_hold(
    context: BrowserContext, site: Callable[..., Any], tmp_path: Path
) -> None:
    """One device of either sort recorded nothing, and answers as one that holds nothing.

    Python's devices are seeded; a browser's random numbers are its own, so that shares may be off by `REACH`.
    """
    editor = load_collection(TOML)
    clock = ManualClock(editor.opens(STEP) + 1.0)
    server = InProcess(editor, clock, tmp_path / "store.db", rng=Random(seed=1))
    home = site(editor)
    home.collector = server
    server.restart()
    keys = server.options["keys"]
    for number in range(EACH):
        given: Any = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "editor"}
        given["rng"] = Random(seed=number)
        with Client(tmp_path / str(number), server, keys.public, **given) as device:
            if number:
                device.record("features", {"link", "bold"} if number % 2 else {"undo", "bold"})
            device.tick()
            device.upload()
    page = context.new_page()
    page.goto(f"{home.url}/page")
    page.wait_for_function("() => !!window.open_client")
    page.evaluate("time => { window.time = time; }", 1000 * clock.now())
    page.evaluate(BROWSERS, {"collection": "editor", "keys": [keys.public.hex()], "devices": EACH})
    page.close()
    assert server.collector.counts()[editor.collection_id, "accepted"] == 3 * 2 * EACH
    clock.set(editor.opens(STEP + 1) + editor.lateness_seconds + 1.0)
    server.restart()
    made_by = {}
    for question in editor.questions:
        asks = server.store.asks(EraRow(editor.collection_id, question, STEP))
        sketch = next(Sketch.from_bytes(ask.sketch) for ask in asks if ask.sketch is not None)
        mechanism = editor.questions[question].mechanism_for(editor.setting(question))
        (release,) = server.store.releases(editor.collection_id, question, 0, 99, 99)
        told = json.loads(release.payload)
        assert told["labels"] == ["bold", "table", "link", "image", "undo"]
        assert told["n"] == 2 * EACH
        assert told["value"] == mechanism.estimate(sketch).value.tolist()
        assert told["value"] == pytest.approx([0.95, 0, 0.5, 0, 0.45], abs=REACH[question])
        made_by[question] = type(mechanism).__name__
    assert made_by == {"used": "PrivSet", "sampled": "PSFO", "bits": "SplitUnary"}
    server.store.close()
