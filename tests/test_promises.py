"""Every test that the promises point to is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "promises.md").read_text(encoding="utf-8"))


def test_there_are_promises() -> None:
    assert len(NAMED) > 40
    assert len(set(NAMED)) == len(NAMED)


def test_a_promise_has_its_test() -> None:
    assert [f"{file}: {test}" for file, test in NAMED if not _is_in(test, ROOT / file)] == []


def _is_in(test: str, file: Path) -> bool:
    there = rf"^((async )?def {test}\(|{test} = (contract|kind)_tests\()"
    return re.search(there, file.read_text(encoding="utf-8"), re.MULTILINE) is not None
