"""Every test that the promises point to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "promises.md").read_text(encoding="utf-8"))


def test_there_are_promises() -> None:
    assert len(NAMED) > 40
    assert len(set(NAMED)) == len(NAMED)


@pytest.mark.parametrize(("file", "test"), NAMED, ids=[test for _, test in NAMED])
def test_a_promise_has_its_test(file: str, test: str) -> None:
    there = rf"^((async )?def {test}\(|{test} = contract_tests\()"
    assert re.search(there, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
