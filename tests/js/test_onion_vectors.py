"""What the browser's client wraps in layers, the library opens, layer by layer and for the right batch alone."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from hubbub.shuffle.onion import LAYER_BYTES, OnionKey, peel


def test_onions_of_the_browser_are_opened(built: Path, node: list[str]) -> None:
    keys, report, batch = [OnionKey.generate() for _ in range(3)], bytes(range(40)), "themes.1.popular.0.7.1.0"
    asked = {"report": report.hex(), "route": [key.public.hex() for key in keys], "batch": batch}
    done = subprocess.run(
        [*node, "--test", str(Path(__file__).with_name("onion.test.mjs"))],
        env={"HUBBUB_JS": str(built / "internals.mjs"), "HUBBUB_ROUTE": json.dumps(asked)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = re.search(r"onions ([0-9a-f ]+)", done.stdout)
    assert printed is not None, done.stdout
    onions = [bytes.fromhex(onion) for onion in printed.group(1).split()]
    assert len(set(onions)) == 3  # a fresh ephemeral key each
    assert {len(onion) for onion in onions} == {len(report) + 3 * LAYER_BYTES}
    assert peel(onions, keys[0], "themes.1.popular.0.8.1.0", place=0).unreadable == 3
    assert peel(onions, keys[0], batch, place=1).unreadable == 3
    for place, key in enumerate(keys):
        onions = peel(onions, key, batch, place=place).inside
    assert onions == [report] * 3
