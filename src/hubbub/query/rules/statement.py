"""Refuses statements of a shape that cannot be answered: joins, sub-queries, DISTINCT, windows and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.errors import did_you_mean, refused
from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

KNOWN_PARTS = {"expressions", "from_", "where", "group", "having", "order", "limit", "offset"}
NAMES = {
    "with_": "WITH",
    "joins": "a join",
    "distinct": "DISTINCT",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "laterals": "LATERAL",
    "into": "INTO",
    "sample": "a sample",
    "pivots": "PIVOT",
}


def check_statement(select: Tree, schema: TableSchema) -> Tree:
    """The same query, if it is SELECT ... FROM one table with what may follow."""
    from sqlglot import exp

    for subquery in select.find_all(exp.Subquery, exp.Exists, exp.Select):
        if subquery is not select:
            raise refused(subquery, "sub-queries are not answered", "ask the inner query first, and put its answer in")
    for part, value in select.args.items():
        if value and part not in KNOWN_PARTS:
            name = NAMES.get(part, part.strip("_").upper())
            node = value[0] if isinstance(value, list) else value
            where = node if isinstance(node, exp.Expression) else select.find(exp.Table) or select
            raise refused(where, f"{name} is not answered", _instead(part, schema))
    source = select.args.get("from_")
    if source is None:
        raise refused(select, "there is no FROM", f"ask FROM {schema.name}")
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise refused(source, "only a table can stand behind FROM", f"ask FROM {schema.name}")
    extra = [part for part, value in table.args.items() if value and part not in ("this", "alias")]
    if extra:
        raise refused(source, "only the name of a table can stand behind FROM", f"ask FROM {schema.name}")
    if table.name.casefold() != schema.name.casefold():
        raise refused(table, f"unknown table {table.sql('duckdb')}", did_you_mean(table.name, [schema.name]))
    for window in select.find_all(exp.Window):
        raise refused(window, "windows are not answered", "ask GROUP BY")
    for order in select.find_all(exp.Star):
        if not isinstance(order.parent, exp.Count):
            raise refused(order, "rows cannot be shown: nobody's are known", "ask COUNT(*), SUM(...) or AVG(...)")
    return select


def _instead(part: str, schema: TableSchema) -> str:
    if part in ("joins", "laterals"):
        return f"one table is asked at a time, here {schema.name}"
    if part == "distinct":
        return "ask GROUP BY"
    return "known are SELECT, FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET"
