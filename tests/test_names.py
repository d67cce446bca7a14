"""A public class has a name that no other has: whoever reads it, or searches for it, finds one thing."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "hubbub"


def classes(folder: Path) -> dict[str, list[str]]:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(folder)))
    return homes


def repeated(every: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: homes for name, homes in every.items() if len(homes) > 1}


def test_no_public_class_name_is_there_twice() -> None:
    every = classes(PACKAGE)
    assert repeated(every) == {}
    assert len(every) > 300  # they were looked at


def test_a_name_that_is_there_twice_is_found(tmp_path: Path) -> None:
    for name in ("one.py", "other.py"):
        (tmp_path / name).write_text("class Store: ...\nclass _Own: ...\n")
    assert repeated(classes(tmp_path)) == {"Store": ["one.py", "other.py"]}
