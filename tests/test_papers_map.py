"""Every row of docs/papers.md leads to a place, by a key or a command, and to a test."""

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest
import typer

from hubbub.alarms.definition import AlarmDefinition
from hubbub.authoring.toml import EXAMPLE, read_collection
from hubbub.cli.app import app
from hubbub.collection.shuffle_route import ROUTES
from hubbub.consistency import METHODS as CONSISTENCY
from hubbub.core.domain import DOMAINS
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.kernels.curator import SMOOTHERS
from hubbub.mechanisms import MECHANISMS
from hubbub.protocols.window import METHODS as WINDOW
from hubbub.query.schema import METHODS as TABLE
from hubbub.questions import QUESTIONS, Setting

ROOT = Path(__file__).parent.parent
WITH_PAPERS = find_spec("hubbub_papers") is not None
COMMANDS: Any = typer.main.get_command(app)
HEAD = "| name | where | reached by | test |"
SECTIONS = ("schedule", "privacy", "population")
NAMES = {
    "--mechanism": tuple(MECHANISMS),
    "--method": (*WINDOW, *TABLE),
    "--consistency": tuple(CONSISTENCY),
    "--smoother": SMOOTHERS,
}
"""What the values of some options may be."""


@dataclass(frozen=True)
class Row:
    """A row of a table: a name, and what stands between backticks in each of the other columns."""

    name: str
    places: tuple[str, ...]
    ways: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def problems(self) -> list[str]:
        """What is wrong with it: one sentence each."""
        columns: list[tuple[str, tuple[str, ...], Callable[[str], str]]] = [
            ("place", self.places, place_problem),
            ("key or command", self.ways, way_problem),
            ("test", self.tests, named_test_problem),
        ]
        missing = [f"{self.name}: no {column}" for column, texts, _ in columns if not texts]
        return missing + [
            f"{self.name}: {text}: {complaint}"
            for _, texts, problem in columns
            for text in texts
            if (complaint := problem(text))
        ]


def rows(page: str) -> Iterator[Row]:
    """The rows of a page's tables."""
    for line in page.splitlines():
        if line.startswith("|") and line != HEAD and not line.startswith("|---"):
            name, *others = line.strip("|").split("|")
            assert len(others) == 3, line
            places, ways, tests = (tuple(re.findall("`([^`]+)`", cell)) for cell in others)
            yield Row(name.strip(), places, ways, tests)


def place_problem(text: str) -> str:
    """Of a file, or of a name in `hubbub`, or in `hubbub_papers` if it begins with "papers."."""
    if "/" in text:
        return "" if (ROOT / text).exists() else "no such file"
    package, name = ("hubbub_papers", text[7:]) if text.startswith("papers.") else ("hubbub", text)
    if package == "hubbub_papers" and not WITH_PAPERS:
        return ""
    found: Any = import_module(package)
    for part in name.split("."):
        if not hasattr(found, part):
            try:
                import_module(f"{found.__name__}.{part}")
            except (ModuleNotFoundError, AttributeError):
                return f"no such name: {part}"
        found = getattr(found, part)
    return ""


@cache
def texts_of_tests() -> Mapping[str, tuple[str, ...]]:
    """What is in the files of tests, by their names without `test_` and `.py`."""
    found: dict[str, tuple[str, ...]] = {}
    for folder in ("tests", "papers/tests"):
        for file in sorted({*(ROOT / folder).rglob("test_*.py")} - {*(ROOT / "tests/plugin_package").rglob("*.py")}):
            name = file.stem.removeprefix("test_")
            found[name] = (*found.get(name, ()), file.read_text(encoding="utf-8"))
    return found


def named_test_problem(text: str) -> str:
    """Of a test, such as `psfo::bad_sets_are_refused`: a file and a function, without `test_`."""
    file, _, function = text.partition("::")
    there = rf"^ *(def test_{function}\(|test_{function} = (contract|kind)_tests\()"
    matching = [source for source in texts_of_tests().get(file, ()) if re.search(there, source, re.MULTILINE)]
    return "" if len(matching) == 1 else "no such test" if not matching else "a test of several files"


def way_problem(text: str) -> str:
    """Of a command, or of a key."""
    return command_problem(shlex.split(text)[1:]) if text.startswith("hubbub ") else key_problem(text)


def command_problem(words: list[str]) -> str:
    """Of a command's words: it exists, and has the options; a reproduction is in the catalogue."""
    command = COMMANDS
    while words and words[0] in getattr(command, "commands", {}):
        command, *words = command.commands[words[0]], *words[1:]
    commands = getattr(command, "commands", {})
    if "file" in commands and words and (words[0].startswith("-") or words[0].isupper()):
        command, commands = commands["file"], {}  # which need not be named
    if command is COMMANDS or (words and commands):
        return f"no such command: {' '.join(words[:1])}"
    if command.name == "reproduce":
        return reproduction_problem(words)
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    if command.context_settings.get("ignore_unknown_options"):  # the fields of a mechanism are options too
        options |= {f"--{name}".replace("_", "-") for kind in MECHANISMS.values() for name in fields_of(kind)}
    for place, word in enumerate(words):
        value = words[place + 1] if place + 1 < len(words) else ""
        if word.startswith("-") and word not in options:
            return f"no such option: {word}"
        if word in NAMES and value and value not in NAMES[word]:
            return f"no such value of {word}: {value}"
    return ""


def reproduction_problem(words: list[str]) -> str:
    """Of the name of a reproduction, or of a pattern."""
    names = [word for word in words if not word.startswith("-")]
    known = reproductions()
    if not WITH_PAPERS or any(fnmatchcase(name, full_name(names[0])) for name in known if names):
        return ""
    return "no such reproduction"


def full_name(name: str) -> str:
    """The name of a reproduction, or of several as a pattern, for a short form of it."""
    harness = import_module("hubbub_papers.harness")
    lengthened: Callable[[str], str] = getattr(harness, "full_name", str)
    return lengthened(name)


def reproductions() -> list[str]:
    """The full names of all tables and figures of the catalogue."""
    return [full_name(name) for name in import_module("hubbub_papers").REPRODUCTIONS] if WITH_PAPERS else []


def key_problem(text: str) -> str:
    """Of a key of a question, a field, an alarm, the shuffle or another table of a collection's file; or of its value.

    A value of a question's key is right if an example of the kind can be asked with it.
    """
    path, _, value = text.partition(" = ")
    table, _, key = path.partition(".")
    try:
        given = tomllib.loads(f"value = {value}")["value"] if value else None
    except tomllib.TOMLDecodeError:
        return "no value of TOML"
    if table == "trust":
        return "" if given in ("local", *ROUTES) else "no such trust"
    if table in SECTIONS:
        return section_problem(path, 1 if given is None else given)
    kinds: list[Any] = [QUESTIONS[table].reading({key: given})] if table in QUESTIONS else []
    kinds += [DOMAINS[table]] if table in DOMAINS else []
    kinds += [AlarmDefinition] if table == "alarms" else []
    kinds += [*ROUTES.values()] if table == "shuffle" else []
    having = [kind for kind in kinds if key in fields_of(kind)]
    if not having:
        return "no such key" if kinds else "neither a key nor a command"
    return value_problem(table, key, given) if table in QUESTIONS and given is not None else ""


def fields_of(kind: object) -> list[str]:
    """The names of a dataclass's fields."""
    return [field.name for field in fields(cast("Any", kind)) if field.init]


def value_problem(kind: str, key: str, value: Any) -> str:
    """Of the value of a question's key: no example of the kind can be asked with it."""
    value, refusals = tuple(value) if isinstance(value, list) else value, []
    for example, domains in QUESTIONS[kind].examples():
        if key not in fields_of(example):
            continue  # a kind may have another class for some of its keys
        try:
            question = replace(example, **{key: value}).bound(Setting("asked", domains, 3600))
            question.check()
            question.check_consistency()
            question.terms()
        except HubbubError as error:
            refusals.append(str(error))
        else:
            return ""
    return f"no example of the kind takes it: {'; '.join(refusals[:1])}"


def section_problem(path: str, value: Any) -> str:
    """Of a key in another table of the file: the smallest collection has nothing against a key of this name."""
    file = dict(leaves(tomllib.loads(EXAMPLE))) | {path: value}
    try:
        read_collection("\n".join(f"{name} = {json.dumps(at)}" for name, at in file.items()))
    except InvalidValue as error:
        return "no such key" if "no such key" in error.allowed else ""
    return ""


def leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested tables, with the path of each."""
    for name, value in table.items():
        yield from leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else [(f"{prefix}{name}", value)]


ROWS = list(rows((ROOT / "docs" / "papers.md").read_text(encoding="utf-8")))


def test_every_row_leads_to_a_place_a_way_and_a_test() -> None:
    assert [problem for row in ROWS for problem in row.problems] == []


def test_no_name_has_two_rows_with_the_same_ways() -> None:
    assert len({(row.name, row.ways) for row in ROWS}) == len(ROWS) > 250


@pytest.mark.skipif(not WITH_PAPERS, reason="hubbub_papers is not installed")
def test_every_table_and_figure_has_a_row() -> None:
    named = [full_name(way.split()[2]) for row in ROWS for way in row.ways if way.startswith("hubbub reproduce ")]
    assert [name for name in reproductions() if not any(fnmatchcase(name, pattern) for pattern in named)] == []


GOOD = '| GRR | `GRR` | `histogram.mechanism = "GRR"` | `psfo::bad_sets_are_refused` |'


def test_the_row_that_is_changed_in_the_next_test_is_right() -> None:
    assert [row.problems for row in rows(GOOD)] == [[]]


@pytest.mark.parametrize(
    ("there", "instead", "complaint"),
    [
        ("`GRR`", "`GRRR`", "GRRR: no such name: GRRR"),
        ("`GRR`", "`GRR.ratios`", "no such name: ratios"),
        ("`GRR`", "`planning.nothing.at_all`", "no such name: nothing"),
        ("`GRR`", "`docs/nothing.md`", "no such file"),
        ("`GRR`", "library only", "no place"),
        ('`histogram.mechanism = "GRR"`', "library only", "no key or command"),
        ("histogram.mechanism", "histogram.mechanisms", "no such key"),
        ("histogram.mechanism", "histograms.mechanism", "neither a key nor a command"),
        ('"GRR"', '"GRRR"', "no example of the kind takes it: "),
        ('"GRR"', "GRR", "no value of TOML"),
        ('histogram.mechanism = "GRR"', "privacy.minimum_batches", "no such key"),
        ('histogram.mechanism = "GRR"', 'trust = "everyone"', "no such trust"),
        ('histogram.mechanism = "GRR"', "shuffle.fake", "no such key"),
        ('histogram.mechanism = "GRR"', "hubbub plans", "no such command: plans"),
        ('histogram.mechanism = "GRR"', "hubbub plan shapes", "no such command: shapes"),
        ('histogram.mechanism = "GRR"', "hubbub plan shares --size", "no such option: --size"),
        ('histogram.mechanism = "GRR"', "hubbub amplify --mechanism NetSub --dimensions", "no such option"),
        ('histogram.mechanism = "GRR"', "hubbub estimate --mechanism GRRR", "no such value of --mechanism: GRRR"),
        ("psfo::", "psf::", "no such test"),
        ("::bad_sets", "::worse_sets", "no such test"),
        ("`psfo::bad_sets_are_refused`", "untested", "no test"),
    ],
)
def test_what_leads_nowhere_is_found(there: str, instead: str, complaint: str) -> None:
    (row,) = rows(GOOD.replace(there, instead))
    (problem,) = row.problems
    assert complaint in problem


@pytest.mark.skipif(not WITH_PAPERS, reason="hubbub_papers is not installed")
def test_a_reproduction_that_is_not_in_the_catalogue_is_found() -> None:
    assert way_problem("hubbub reproduce dissertation-table-3.1") == ""
    assert way_problem("hubbub reproduce dissertation-table-3.9") == "no such reproduction"
    assert way_problem("hubbub reproduce") == "no such reproduction"
    assert place_problem("papers.baselines.ddrm.DDRM") == ""
    assert place_problem("papers.baselines.ddrm.DDRN") == "no such name: DDRN"
