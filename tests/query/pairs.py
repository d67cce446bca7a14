"""Reads fixtures: a query that ends with a semicolon, what becomes of it, a blank line; lines with -- are comments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hubbub as hb
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema

FIXTURES = Path(__file__).parent / "fixtures"
SCHEMA = TableSchema(
    "people",
    (
        PrivateColumn("age", hb.Ordinal(100)),
        PrivateColumn("State", hb.Categorical(["CA", "NY", "O'Hara", "TX"])),
        PrivateColumn("salary", hb.Numeric(0, 200_000, cells=40)),
        PrivateColumn("kids", hb.Ordinal(10), missing=True),
    ),
    (
        PublicColumn("os", "VARCHAR"),
        PublicColumn("price", "DOUBLE"),
        PublicColumn("qty", "BIGINT"),
        PublicColumn("pro", "BOOLEAN"),
        PublicColumn("day", "DATE"),
        PublicColumn('odd "name"', "DOUBLE"),
    ),
)


def pairs(name: str) -> Iterator[tuple[str, str]]:
    """The pairs of a file."""
    text = (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")
    for block in text.split("\n\n"):
        lines = [line for line in block.strip("\n").split("\n") if not line.startswith("--")]
        query, _, outcome = "\n".join(lines).partition(";\n")
        if outcome:
            yield query, outcome
