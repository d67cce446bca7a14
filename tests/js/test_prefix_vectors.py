"""The browser's client sees of a prefix what the library does, and reports it alike."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.vectors.make_prefix import vectors

VECTORS = Path(__file__).parents[1] / "vectors"


def test_the_stored_prefixes_are_these() -> None:
    assert json.loads((VECTORS / "prefix.json").read_text(encoding="utf-8")) == json.loads(json.dumps(vectors()))


def test_the_browser_agrees(built: Path, node: list[str]) -> None:
    done = subprocess.run(
        [*node, "--test", str(Path(__file__).with_name("prefix.test.mjs"))],
        env={"HUBBUB_JS": str(built / "internals.mjs"), "HUBBUB_VECTORS": str(VECTORS)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
