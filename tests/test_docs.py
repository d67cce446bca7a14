"""The documents' examples run, and whatever people import has one."""

import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import hubbub
import hubbub.checks
import hubbub.client
from hubbub.core.domain import DOMAINS
from hubbub.questions import QUESTIONS

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_the_documents_run(page: Path) -> None:
    results = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert results.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_files_that_the_maps_name_are_there(page: str) -> None:
    """Names of files, from the root, from the package, or of the browser's client."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names = re.findall(r"(?<![\w/.])((?:\w+/)+\w+\.(?:py|ts|md|json|sh))(?!\w)", text)
    assert len(names) > 10
    homes = [ROOT, ROOT / "src" / "hubbub", ROOT / "clients" / "js" / "src"]
    assert [name for name in names if not any((home / name).exists() for home in homes)] == []


def test_files_that_texts_name_are_there() -> None:
    """Names of files between backticks, in pages, docstrings and comments: files are moved, and texts are forgotten."""
    tops = [
        ROOT / top for top in ("src", "papers/src", "clients/js/src", "tests", "papers/tests", "benchmarks", "examples")
    ]
    every = [path for top in tops for kind in ("*.py", "*.ts") for path in top.rglob(kind)]
    there = {"/" + path.relative_to(ROOT).as_posix() for path in every}
    texts = [*PAGES, *(path for path in every if any(path.is_relative_to(top) for top in tops[:3]))]
    named = {
        (page.name, name)
        for page in texts
        for name in re.findall(r"`((?:\w+/)*\w+\.(?:py|ts))`", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 150
    assert [(page, name) for page, name in named if not any(path.endswith("/" + name) for path in there)] == []


def imported_by_people() -> dict[str, Any]:
    """What programs import: the names of the package, of clients and of the contract suite, kinds, and domains."""
    homes = {"hubbub": [name for name in dir(hubbub) if not name.startswith("_")]}
    homes |= {"hubbub.client": hubbub.client.__all__, "hubbub.checks": hubbub.checks.__all__}
    names = {f"{home}.{name}": getattr(importlib.import_module(home), name) for home in homes for name in homes[home]}
    return (
        names
        | {f"kind {name}": QUESTIONS[name] for name in QUESTIONS}
        | {f"field {name}": DOMAINS[name] for name in DOMAINS}
    )


def needs_an_example(thing: object) -> bool:
    """Our functions do, and classes with methods of their own; contracts, errors and plain data do not."""
    if inspect.isabstract(thing) or not getattr(thing, "__module__", "").startswith("hubbub"):
        return False
    if not inspect.isclass(thing):
        return inspect.isfunction(thing)
    methods = [name for name, part in vars(thing).items() if inspect.isfunction(part) and not name.startswith("_")]
    return bool(methods) and not (issubclass(thing, Exception) or getattr(thing, "_is_protocol", False))


def shows_an_example(thing: object) -> bool:
    """In its own docstring, or in that of one of its methods or of a class that it extends."""
    if not inspect.isclass(thing):
        return ">>>" in (inspect.getdoc(thing) or "")
    parts = [
        part for base in thing.__mro__ if base.__module__.startswith("hubbub") for part in [base, *vars(base).values()]
    ]
    return any(">>>" in (inspect.getdoc(part) or "") for part in parts)


def test_everything_that_people_import_has_a_runnable_example() -> None:
    things = imported_by_people()
    assert len(things) > 80
    assert [name for name, thing in things.items() if needs_an_example(thing) and not shows_an_example(thing)] == []
