"""What pyproject.toml declares is what the package imports: nothing is missing, nothing is carried along."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.utils import canonicalize_name

import hubbub
from tests.authoring.test_shuffle import TEXT as SHUFFLED
from tests.only_extra import BASE, PROJECT, closure, declared
from tests.served import ServedCollector

ROOT = Path(__file__).parents[1]
EMOJI = ROOT / "examples" / "emoji.toml"
EXAMPLES = str(ROOT / "tests" / "run_examples.py")
LOADED_BY_UVICORN = {"httptools", "uvloop"}
OF_SPARK = {"pyspark"}  # 456 MB, and where Spark runs it is there already
THERE_IN_TESTS = {"pytest", "sklearn"}  # a figure with classifiers says what to install

PAGES = ["/results/survey", "/results/survey/popular", "/ingest/survey", "/privacy/survey", "/collections/survey"]
PAGES += ["/v1/collections/survey/shuffled", "/v1/collections/survey"]


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_-]", requirement)[0]


def _imported() -> set[str]:
    """The third-party packages that a statement anywhere in the package imports."""
    modules = set()
    for node in (node for path in (ROOT / "src").rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
    return {module.partition(".")[0] for module in modules} - set(sys.stdlib_module_names) - {"hubbub"}


def _declared() -> set[str]:
    extras = PROJECT["optional-dependencies"]
    every = [*PROJECT["dependencies"], *(each for name in extras for each in extras[name])]
    return {_name(each) for each in every} - {PROJECT["name"]}


def test_nothing_is_declared_that_nothing_imports():
    assert _declared() - LOADED_BY_UVICORN == _imported() - THERE_IN_TESTS


def test_all_is_every_extra_but_spark():
    assert closure(declared("all")) >= {canonicalize_name(name) for name in _declared()} - OF_SPARK


def test_a_package_has_one_range_of_versions():
    extras = PROJECT["optional-dependencies"].values()
    stated = {text for wanted in (PROJECT["dependencies"], *extras) for text in wanted}
    names = [_name(text) for text in stated if _name(text) != PROJECT["name"]]
    assert len(names) == len(set(names))


def test_the_browser_client_has_the_version_of_the_package():
    """The papers read it when they are built (`papers/hatch_build.py`)."""
    files = (ROOT / "clients" / "js" / f"{name}.json" for name in ("package", "package-lock"))
    package, lock = (json.loads(path.read_text()) for path in files)
    assert {package["version"], lock["version"], lock["packages"][""]["version"]} == {hubbub.__version__}


class Environment(NamedTuple):
    """Where one extra is installed: the command `hubbub`, and the command that runs a script."""

    hubbub: Sequence[str]
    script: Sequence[str]

    def run(self, *command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
        program = self.script if command[0].endswith(".py") else self.hubbub
        return subprocess.run([*program, *command], cwd=cwd, capture_output=True, text=True, check=False, timeout=600)


def blocked(extra: str) -> Environment:
    """This environment, in which what the extra does not bring cannot be imported."""
    program = [sys.executable, str(ROOT / "tests" / "only_extra.py"), extra]
    return Environment(program, program)


def installed(extra: str, folder: Path) -> Environment:
    """A fresh environment into which pip installs hubbub with one extra."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    wanted = str(ROOT) if extra == BASE else f"{ROOT}[{extra}]"
    subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", wanted], check=True)
    clean = ["env", "-u", "PYTHONPATH"]
    return Environment([*clean, str(folder / "bin" / "hubbub")], [*clean, str(folder / "bin" / "python")])


def prepare(folder: Path) -> Path:
    """A folder with a shuffled collection and a table of records."""
    (folder / "shuffled.toml").write_text(SHUFFLED)
    (folder / "people.csv").write_text("os,age\n" + "ios,31\nweb,7\n" * 50)
    return folder


TABLE = "table people.csv store.duckdb --private os --public age --epsilon 2 --seed 1"
ASKED = "sql store.duckdb|SELECT COUNT(*) FROM people WHERE os = 'ios'"
WORKS = {
    "cli": ["--version", f"check {EMOJI}", "audit GRR", "plan shares --domain 9 --epsilon 1 -n 1000"],
    "analytics": ["check shuffled.toml", "amplify --mechanism GRR --epsilon 1 -n 1000 --domain 9"],
    "demo": ["demo --headless --devices 200 --workers 1 --step 2s --seconds 1"],
    "server": ["check shuffled.toml"],
    "sql": [TABLE, ASKED],
}
"""What each extra alone is enough for; arguments with spaces are divided by |."""
LACKS = [
    (BASE, "client status nowhere", "cli"),
    (BASE, f"check {EMOJI}", "cli"),
    (BASE, f"serve {EMOJI}", "server"),
    (BASE, "shuffler own-keys key", "server"),
    (BASE, ASKED, "sql"),
    (BASE, TABLE, "sql"),
    (BASE, "demo", "demo"),
    (BASE, "plan shares --domain 9 --epsilon 1", "analytics"),
    ("cli", "check shuffled.toml", "analytics"),
    ("cli", "amplify --mechanism GRR --epsilon 1 -n 1000 --domain 9", "analytics"),
    ("cli", "audit GRR --montecarlo 1000", "analytics"),
    ("cli", TABLE, "sql"),
    ("cli", f"serve {EMOJI}", "server"),
    ("cli", "demo", "demo"),
    ("analytics", f"serve {EMOJI}", "server"),
    ("analytics", ASKED, "sql"),
    ("server", ASKED, "sql"),
    ("server", TABLE, "sql"),
    ("demo", ASKED, "sql"),
    ("server", "shuffler homomorphic-key --keys made", "shuffle"),
]


def _arguments(command: str) -> list[str]:
    first, *rest = command.split("|")
    return [*first.split(), *rest]


def works(environment: Environment, extra: str, folder: Path) -> None:
    for command in WORKS.get(extra, ()):
        done = environment.run(*_arguments(command), cwd=prepare(folder))
        assert done.returncode == 0, (command, done.stderr)


def lacks(environment: Environment, command: str, extra: str, folder: Path) -> None:
    done = environment.run(*_arguments(command), cwd=prepare(folder))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), (command, done.stderr)
    assert done.stderr.endswith(f": pip install 'hubbub-ldp[{extra}]'\n"), done.stderr


def serves(environment: Environment, folder: Path) -> None:
    """Every page of a shuffled collection, by a collector with the extra `server` alone."""
    key = environment.run("shuffler", "collector-key", cwd=folder).stdout.split('"')[1]
    collector = ServedCollector(folder, SHUFFLED.replace("0c" * 32, key), program=environment.hubbub)
    try:
        for page in PAGES:
            assert collector.get(page, token=True)[0] == 200, page
    finally:
        collector.close()


@pytest.mark.parametrize("extra", WORKS)
def test_an_extra_alone_is_enough_for_its_commands(extra: str, tmp_path: Path):
    works(blocked(extra), extra, tmp_path)


@pytest.mark.parametrize(("extra", "command", "named"), LACKS)
def test_an_extra_that_is_missing_is_named_in_one_line(extra: str, command: str, named: str, tmp_path: Path):
    lacks(blocked(extra), command, named, tmp_path)


def test_the_server_alone_shows_every_page(tmp_path: Path):
    serves(blocked("server"), tmp_path)


def test_the_examples_of_what_people_import_run_or_name_an_extra():
    done = blocked(BASE).run(EXAMPLES, *sorted({*hubbub._HOMES.values(), "hubbub.checks", "hubbub.query.answer"}))
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("extra", [BASE, *PROJECT["optional-dependencies"]])
def test_a_real_installation_of_an_extra_runs_its_commands_pages_and_examples(extra: str, tmp_path: Path):
    environment = installed(extra, tmp_path / "environment")
    works(environment, extra, tmp_path)
    for having, command, named in LACKS:
        if having == extra:
            lacks(environment, command, named, tmp_path)
    if extra == "server":
        serves(environment, tmp_path)
    done = environment.run(EXAMPLES)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
