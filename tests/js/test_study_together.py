"""One study of Python's clients and of browsers, together: what is released is what a simulation says of the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub import Random
from hubbub.client import Client
from hubbub.collection import ManualClock
from tests.shared.in_process import InProcess

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext


from tests.service.study_world import LATENESS, ROUND, START, retold, study_collection

EACH = 24
"""Devices of either sort."""
BROWSERS = """async ([options, round]) => {
  for (let n = 0; n < options.devices; n++) {
    const client = await open_client({ ...options, database: `device ${n}` });
    await client.record("word", n % 3 ? 5 : (n + round) % 40);
    await client.tick();
  }
}"""


def test_both_clients_answer_one_study_and_a_simulation_says_the_same(
    context: BrowserContext, site: Callable[..., Any], tmp_path: Path
) -> None:
    # Three rounds, the first in two parts of which one is kept and counted; what the third asks depends on the others.
    study, clock = study_collection(most=2), ManualClock(START + 1.0)
    server = InProcess(study, clock, tmp_path / "store.db", rng=Random(seed=1))
    home = site(study)
    home.collector = server
    keys = server.options["keys"]
    heard, options = [], {"collection": "study", "keys": [keys.public.hex()], "devices": EACH}
    for round in (1, 2, 3):
        for number in range(EACH):  # everyone begins again from what it keeps
            given: Any = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "study"}
            with Client(tmp_path / str(number), server, keys.public, **given) as device:
                device.record("word", 5 if number % 3 else (number + round) % 40)  # frozen at the first answer
                device.tick()
                device.upload()
                assert device.status().queued == 0
        heard.append(server.collector.counts()[study.collection_id, "accepted"])
        page = context.new_page()
        page.goto(f"{home.url}/page")
        page.wait_for_function("() => !!window.open_client")
        page.evaluate("time => { window.time = time; }", 1000 * clock.now())
        page.evaluate(BROWSERS, [options, round])
        page.close()
        heard.append(server.collector.counts()[study.collection_id, "accepted"])
        clock.set(START + ROUND * round + LATENESS + 1.0)
        server.collector.tick()
        server.restart()
    by_round = [after - before for before, after in zip([0, *heard], heard, strict=False)]
    assert sum(by_round[::2]) == EACH, "every Python device is on one arc"
    assert sum(by_round[1::2]) == EACH, "every browser is on one arc"
    (row,) = server.store.releases(study.collection_id, "common", 0, 99, 99)
    told, said = json.loads(row.payload), retold(study, server.store)
    assert told.get("stopped") is None
    assert said.estimate.value.tolist() == told["value"]
    assert list(said.estimate.labels or ()) == told["labels"]
    assert said.n == 2 * EACH
    server.store.close()
