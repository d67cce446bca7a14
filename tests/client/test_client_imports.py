"""A device loads nothing it does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "numba",
    "scipy",
    "starlette",
    "uvicorn",
    "psycopg",
    "rich",
    "typer",
    "matplotlib",
    "pyarrow",
    "duckdb",
    "pandas",
}
HERE = str(Path(__file__).parent)
LIFE = f"""
import sys, tempfile
sys.path.insert(0, {HERE!r})
from device import MEMO, device, live
from local_server import LocalServer, survey
from hubbub.collection import ManualClock
from hubbub.client import read_status
server, clock = LocalServer(survey(MEMO)), ManualClock()
with tempfile.TemporaryDirectory() as folder:
    from pathlib import Path
    with device(Path(folder), server, clock) as client:
        assert live(client, server, clock, 5, 3) == 1
    assert read_status(folder, clock).memos == {{"page": 1}}
"""
STREAM = f"""
import sys
sys.path.insert(0, {HERE!r})
from hubbub.client import Client
from hubbub.authoring import load_collection
from hubbub.core.random import Random
text = '''
name = "survey"
version = 1
title = "Where people are"
[schedule]
step = "1h"
lateness = "10m"
[privacy]
user = 4.0
[fields.place]
kind = "categorical"
names = ["home", "away"]
[questions.places]
kind = "changes"
field = "place"
epsilon = 1.0
steps = 8
changes = 3
'''
collection, rng = load_collection(text), Random()
symbols = collection.questions["places"].mechanism_for(collection.setting("places"))
import numpy as np
states, reports, speaks = symbols.step(symbols.enroll(1, rng), 7, [1], rng, np.array([True]))
"""


def loaded(code: str) -> set[str]:
    script = code + "\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


@pytest.mark.parametrize("code", ["import hubbub.client", LIFE, STREAM], ids=["import", "a step", "a stream"])
def test_a_client_loads_no_analytics_and_no_server(code: str) -> None:
    modules = loaded(code)
    assert not {name.partition(".")[0] for name in modules} & HEAVY
    parts = {".".join(name.split(".")[:2]) for name in modules if name.startswith("hubbub.")}
    assert parts <= {
        f"hubbub.{part}" for part in ("authoring", "client", "collection", "core", "mechanisms", "privacy", "protocols")
    }


def test_the_probe_sees_what_is_loaded() -> None:
    assert "scipy" in loaded("import scipy.stats")
