"""Browsers that hold sets take part in a study of itemsets, with others who hold none: what they hold is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hubbub import Ordinal, Random
from hubbub.collection import ManualClock
from hubbub.core.domain import Sets
from hubbub.core.domain.sets import ItemSets
from tests.shared.in_process import InProcess

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext


from tests.service.itemsets_world import LATENESS, ROUND, START, Shoppers, itemsets_collection

BROWSERS, OTHERS = 24, 60
CROWD = """async ([options, round]) => {
  for (let n = 0; n < options.devices; n++) {
    const client = await open_client({ ...options, database: `device ${n}` });
    if (round === 1) await client.record("basket", new Set([7, 3, 4]));
    await client.tick();
  }
}"""


@pytest.mark.slow
def test_what_browsers_hold_is_found(context: BrowserContext, site: Callable[..., Any], tmp_path: Path) -> None:
    """Browsers draw their own items: in 2 of 18 runs too few were named for a fourth round, and the study was over."""
    study = itemsets_collection(
        domain=Sets(Ordinal(10), most=4), epsilon=20.0, overrides={"epsilon_above_8": "what they hold is to be seen"}
    )
    clock = ManualClock(START + 1.0)
    server = InProcess(study, clock, tmp_path / "store.db", rng=Random(seed=1))
    home = site(study)
    home.collector = server
    others = Shoppers(OTHERS, ItemSets(np.zeros(OTHERS + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), domain=10))
    options = {"collection": "baskets", "keys": [server.options["keys"].public.hex()], "devices": BROWSERS}
    assert study.terms["together"].rounds == 4  # all items are candidates
    for round in (1, 2, 3, 4):
        assert others.send_all(server.collector) > 0
        page = context.new_page()
        page.goto(f"{home.url}/page")
        page.wait_for_function("() => !!window.open_client")
        page.evaluate("time => { window.time = time; }", 1000 * clock.now())
        page.evaluate(CROWD, [options, round])
        page.close()
        clock.set(START + ROUND * round + LATENESS + 1.0)
        server.collector.tick()
    assert server.collector.counts() == {(study.collection_id, "accepted"): BROWSERS + OTHERS}
    (row,) = server.store.releases(study.collection_id, "together", 0, 99, 99)
    told = json.loads(row.payload)
    assert "stopped" not in told
    held = [label for label, share in zip(told["labels"], told["value"], strict=True) if share > 0.01]
    assert set(" + ".join(held).split(" + ")) <= {"3", "4", "7"}
    assert any("+" in label for label in held)
    server.store.close()
