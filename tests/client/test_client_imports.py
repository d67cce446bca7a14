"""A device loads nothing it does not need: no server, no analytics, no kinds of questions, few modules."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.client.device import HOME, World
from tests.client.local_server import KEYS
from tests.shared.small_collections import THEME, collection_text

HEAVY = {"numba", "scipy", "starlette", "uvicorn", "psycopg", "rich", "typer", "matplotlib"}
HEAVY |= {"pyarrow", "duckdb", "pandas"}
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
FEATURES = {"kind": "sets", "most": 3, "items": {"kind": "categorical", "names": ["bold", "table", "link", "undo"]}}
QUESTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "histogram": (THEME, {"kind": "histogram", "epsilon": 0.5}),
    "memo": (HOME, {"kind": "memo", "epsilon": 1.0, "permanent": 2.0}),
    "changes": (THEME, {"kind": "changes", "epsilon": 1.0, "steps": 8, "changes": 3}),
    "sets": (FEATURES, {"kind": "histogram", "epsilon": 4.0}),
}
"""A field, and a question about it."""
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
        assert (client.tick(), client.upload()) == (1, 1), client.status()
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


def documents(folder: Path, field: dict[str, Any], question: dict[str, Any]) -> str:
    """What a server serves of a survey at the beginning of a step, with its ask."""
    asked = {"asked": {**question, "field": "value"}}
    text = collection_text(privacy={"user": 40.0, "minimum_batch": 20}, fields={"value": field}, questions=asked)
    here = World(folder, text)
    here.begin(8)
    return json.dumps({**here.server.documents, "now": here.clock.now(), "key": KEYS.public.hex()})


def test_importing_the_client_loads_few_modules() -> None:
    modules = loaded("import hubbub.client")
    check_light(modules)
    assert len(ours(modules)) <= 51, sorted(ours(modules))


@pytest.mark.parametrize(("field", "question"), QUESTIONS.values(), ids=QUESTIONS)
def test_answering_an_ask_loads_its_mechanism_and_no_more(
    tmp_path: Path, field: dict[str, Any], question: dict[str, Any]
) -> None:
    modules = loaded(LIFE, documents(tmp_path, field, question))
    check_light(modules)
    assert len(ours(modules)) <= 60, sorted(ours(modules))


def test_the_probe_sees_what_is_loaded() -> None:
    assert "scipy" in loaded("import scipy.stats")
    assert "hubbub.questions" in loaded("import hubbub.questions")
