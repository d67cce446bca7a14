"""A device loads nothing it does not need: no server, no analytics, no kinds of questions, few modules."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from hubbub.authoring import load_collection
from tests.client.device import MEMO
from tests.client.local_server import KEYS, LocalServer, survey

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
NEVER = (
    "hubbub.authoring",
    "hubbub.questions",
    "hubbub.consistency",
    "hubbub_papers",
    "hubbub.service",
    "hubbub.simulate",
    "hubbub.protocols.window",
    "hubbub.protocols.sao2",
)
HEAD = """
name = "survey"
version = 1
title = "A survey"
[schedule]
step = "1h"
lateness = "10m"
[privacy]
user = 4.0
"""
PLAIN = (
    HEAD
    + """
[fields.theme]
kind = "categorical"
names = ["light", "dark"]
[questions.popular]
kind = "histogram"
field = "theme"
epsilon = 0.5
"""
)
CHANGES = (
    HEAD
    + """
[fields.place]
kind = "categorical"
names = ["home", "away"]
[questions.places]
kind = "changes"
field = "place"
epsilon = 1.0
steps = 8
changes = 3
"""
)
SETS = (
    HEAD
    + """
[fields.features]
kind = "sets"
most = 3
items = { kind = "categorical", names = ["bold", "table", "link", "image", "undo"] }
[questions.used]
kind = "histogram"
field = "features"
epsilon = 4.0
"""
)
LIFE = """
import json, sys, tempfile
from hubbub.client import Client, Response, read_status
from hubbub.collection import ManualClock

documents = json.loads(sys.argv[1])

class Server:
    def request(self, method, path, headers, body=None):
        if method == "POST":
            return Response(200, {}, b'{"accepted": 1, "rejected": []}')
        return Response(200, {}, json.dumps(documents[path]).encode())

clock = ManualClock(documents["now"])
with tempfile.TemporaryDirectory() as folder:
    key = bytes.fromhex(documents["key"])
    with Client(folder, Server(), key, collection="survey", clock=clock, monotonic=clock.now, jitter=0) as client:
        assert (client.tick(), client.upload()) == (1, 1), client._current.trouble
        assert client.status().spent > 0
print(" ".join(sys.modules))
"""


def loaded(code: str, *arguments: str) -> set[str]:
    script = code if "print" in code else code + "\nimport sys\nprint(' '.join(sys.modules))"
    completed = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, timeout=120
    )
    return set(completed.stdout.split())


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "hubbub"}


def check_light(modules: set[str]) -> None:
    assert not {name.partition(".")[0] for name in modules} & HEAVY
    assert not [name for name in modules if name.startswith(NEVER)]


def documents(text: str) -> str:
    """What a server serves of a survey at the beginning of a step, with its asks."""
    server = LocalServer(survey(MEMO) if text == MEMO else load_collection(text))
    collection, step = server.collection, 8
    asks = [(name, replace(next(collection.protocol(name)), step=step)) for name in collection.questions]
    server.publish_asks(asks, step, collection.closes(step))
    served: dict[str, Any] = server.documents
    return json.dumps({**served, "now": collection.opens(step) + 1.0, "key": KEYS.public.hex()})


def test_importing_the_client_loads_few_modules() -> None:
    modules = loaded("import hubbub.client")
    check_light(modules)
    assert len(ours(modules)) <= 60, sorted(ours(modules))


@pytest.mark.parametrize("text", [PLAIN, MEMO, CHANGES, SETS], ids=["histogram", "memo", "changes", "sets"])
def test_answering_an_ask_loads_its_mechanism_and_no_more(text: str) -> None:
    modules = loaded(LIFE, documents(text))
    check_light(modules)
    assert len(ours(modules)) <= 70, sorted(ours(modules))


def test_the_probe_sees_what_is_loaded() -> None:
    assert "scipy" in loaded("import scipy.stats")
    assert "hubbub.questions" in loaded("import hubbub.questions")
