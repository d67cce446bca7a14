"""Where a later version promises less, as a device finds it: vectors that the browser client runs too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hubbub.collection import Collection
from hubbub.collection.safety import CLAUSES, weaker_clauses
from tests.vectors import make_weaker

VECTORS = Path(__file__).parents[1] / "vectors"

KNOWN = json.loads((VECTORS / "weaker.json").read_text())


@pytest.mark.parametrize("case", KNOWN["cases"], ids=lambda case: case["name"])
def test_a_device_finds_the_clauses_that_promise_less(case: dict[str, Any]) -> None:
    document = KNOWN["documents"][case["of"]]
    old, new = (Collection.from_spec(make_weaker.changed(document, case[name])) for name in ("was", "now"))
    assert sorted(clause.where for clause in weaker_clauses(new, old)) == case["clauses"]


def test_the_vectors_are_those_of_their_program_and_weaken_every_clause() -> None:
    assert make_weaker.vectors() == KNOWN
    weakened = {name for case in KNOWN["cases"] if case["clauses"] for name in case["now"]}
    assert weakened >= {name for name, rule in CLAUSES.items() if not isinstance(rule, str)}
