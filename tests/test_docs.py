"""The documents' examples run, and every public function has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import hubbub

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
# What a program calls; commands, loaders and reproductions are run from the command line, and tested there.
PACKAGES = ("checks", "collection", "consistency", "core", "curator", "mechanisms", "privacy", "protocols", "query")
SIMULATION = ("collect", "conversation", "devices", "ledgers", "streams")
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(hubbub.__path__, "hubbub.")
    if info.name.split(".")[1] in PACKAGES or info.name in {f"hubbub.simulate.{part}" for part in SIMULATION}
)


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


def undocumented(module: str) -> list[str]:
    """The public functions and classes of a module without an example; records, which only hold, need none."""
    home = importlib.import_module(module)
    missing = []
    for name in getattr(home, "__all__", [name for name in vars(home) if not name.startswith("_")]):
        thing = getattr(home, name)
        if getattr(thing, "__module__", None) != module or not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        if inspect.isclass(thing) and (is_record(thing) or inspect.isabstract(thing) or is_interface(thing)):
            continue
        if ">>>" not in (inspect.getdoc(thing) or "") and not shown_by_a_method(thing):
            missing.append(name)
    return missing


def is_interface(kind: type) -> bool:
    return issubclass(kind, Exception) or getattr(kind, "_is_protocol", False)


def is_record(kind: type) -> bool:
    own = [part for name, part in vars(kind).items() if inspect.isfunction(part) and not name.startswith("_")]
    return not own


def shown_by_a_method(thing: object) -> bool:
    return inspect.isclass(thing) and any(">>>" in (inspect.getdoc(part) or "") for part in vars(thing).values())


def test_every_public_function_has_a_runnable_example() -> None:
    assert {module: names for module in MODULES if (names := undocumented(module))} == {}
