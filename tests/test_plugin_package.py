"""A package of somebody else, installed and used: its mechanism is one of ours wherever mechanisms are named."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.shared.small_collections import collection_text

HERE = Path(__file__).parent
PACKAGE = HERE / "plugin_package"
TOML = collection_text(
    "lamps",
    schedule={"step": "1d", "lateness": "2h", "retention": "30d"},
    privacy={"event": 2.0, "minimum_batch": 100},
    fields={"lamp": {"kind": "categorical", "names": ["hall", "kitchen", "porch"]}},
    questions={
        "on": {"kind": "histogram", "field": "lamp", "epsilon": 1.0, "mechanism": "ForcedResponse"},
        "hall": {"kind": "holders", "field": "lamp", "epsilon": 0.5, "value": "hall"},
    },
)
USE = """
import json, sys
import hubbub as hb
from hubbub.authoring import load_collection
from hubbub.mechanisms import randomizers
from hubbub.rehearse.estimate import collect_column

mechanism = hb.ForcedResponse(epsilon=1.0, domain=4)
collection = load_collection("lamps.toml")
ask = next(collection.protocol("on"))
bit = next(collection.protocol("hall"))
collected = collect_column("lamps.csv", "lamp", epsilon=1.0, mechanism="ForcedResponse", seed=1)
print(json.dumps({
    "from_spec": hb.Mechanism.from_spec(json.loads(json.dumps(mechanism.spec()))) == mechanism,
    "plan": "ForcedResponse" in {row.mechanism for row in hb.plan(domain=4, n=1000, epsilon=1.0).rows if row.stderr},
    "refused": {row.mechanism: row.why for row in hb.plan(domain=5, n=1000, epsilon=1.0).rows}["ForcedResponse"],
    "audit": hb.audit(mechanism).ok,
    "all": "ForcedResponse" in randomizers(),  # what an audit of all of them goes through
    "asked": type(ask.mechanism).__name__,
    "question": [bit.view.spec(), list(collection.questions["hall"].labels()), collection.terms["hall"].limit],
    "estimate": [type(collected.mechanism).__name__, collected.n],
}))
"""
GREEDY = """
from hubbub.checks import contract_tests
from hubbub_forced import ForcedResponse

class Greedy(ForcedResponse):
    def ratio(self):
        return super().ratio() / 2

test_contract = contract_tests(Greedy)
"""
END = "-- the end of a command --"
COMMANDS = f"""
import sys
from hubbub.cli import main
for command in (
    "plan shares --domain 4 --n 1000 --epsilon 1",
    "audit ForcedResponse --epsilon 1 --domain 4",
    "estimate lamps.csv --column lamp --epsilon 1 --mechanism ForcedResponse",
    "check lamps.toml --json",
    "plan lamps.toml",
):
    sys.argv = ["hubbub", *command.split()]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    print({END!r})
"""


def install(folder: Path) -> None:
    """What pip makes of the package: its modules, and metadata from its pyproject.toml."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    shutil.copytree(PACKAGE / "hubbub_forced", folder / "hubbub_forced")
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages, into which the package is installed."""
    folder = tmp_path_factory.mktemp("plugin")
    install(folder / "packages")
    (folder / "lamps.toml").write_text(TOML)
    (folder / "lamps.csv").write_text("lamp\n" + "hall\nporch\nnone\nkitchen\nhall\n" * 200)
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    paths = [str(folder / "packages"), *filter(None, [os.environ.get("PYTHONPATH")])]
    given: dict[str, Any] = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}}
    return subprocess.run([sys.executable, *command], **given, capture_output=True, text=True, check=False, timeout=300)


def test_it_is_one_of_ours_wherever_mechanisms_are_named(installed: Path):
    done = run(installed, "-c", USE)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert "a power of two" in results.pop("refused")
    assert results == {
        "from_spec": True,
        "plan": True,
        "audit": True,
        "all": True,
        "asked": "ForcedResponse",
        "question": [{"kind": "among", "codes": [0]}, ["hall", "any other"], 500_000_000_000],
        "estimate": ["ForcedResponse", 1000],
    }


def test_commands_see_it(installed: Path):
    done = run(installed, "-c", COMMANDS)
    assert done.returncode == 0, done.stderr
    plan, audit, estimate, check, plan_of_file = done.stdout.split(END)[:-1]
    for shown in (plan, audit, estimate):
        assert "ForcedResponse" in shown
    assert json.loads(check)["ok"] is True
    assert "hall" in plan_of_file


@pytest.mark.parametrize(("given", "why"), [('"attic"', "value"), ("3", "value"), ('"hall"\nworth = 1', "worth")])
def test_a_question_of_theirs_refuses_what_it_does_not_know(installed: Path, given: str, why: str):
    (installed / "wrong.toml").write_text(TOML.replace('value = "hall"', f"value = {given}"))
    done = run(installed, "-c", "from hubbub.cli import main; main()", "check", "wrong.toml")
    assert done.returncode == 2
    assert f"questions.hall.{why}" in done.stderr


def test_its_author_checks_it_with_one_line(installed: Path):
    options = [str(PACKAGE / "tests"), "--rootdir", str(PACKAGE)]
    done = run(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


def test_the_one_line_fails_where_the_mechanism_is_wrong(installed: Path):
    broken = installed / "test_broken.py"
    broken.write_text(GREEDY)
    done = run(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "exact_epsilon", str(broken))
    assert done.returncode == 1, done.stdout
    assert "2 failed" in done.stdout
