"""Refuses columns and aggregates where they cannot be answered: private values among the results, sums of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.columns_of import private_names
from hubbub.query.errors import refused
from hubbub.query.time_limit import check_time
from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

MOST_GROUPED = 4096
"""Private columns of more values are not grouped by."""


def check_placement(select: Tree, schema: TableSchema) -> Tree:
    """The same query, if private columns stand in WHERE and GROUP BY alone, and results are keys or aggregates."""
    from sqlglot import exp

    where = select.args.get("where")
    if where is not None:
        for call in where.find_all(exp.AggFunc):
            raise refused(call, f"{call.sql_name()} cannot stand in WHERE", "put it behind HAVING")
    group = select.args.get("group")
    keys = [] if group is None else group.expressions
    for key in keys:
        _check_key(key, schema)
    known = {key.sql("duckdb") for key in keys}
    for item in select.expressions:
        _check_result(item.unalias(), known, schema, "SELECT")
    having = select.args.get("having")
    if having is not None:
        if not keys and not having.find(exp.AggFunc):
            raise refused(having, "HAVING without an aggregate", "put the condition behind WHERE")
        _check_result(having.this, known, schema, "HAVING")
    order = select.args.get("order")
    for ordered in [] if order is None else order.expressions:
        _check_result(ordered.this, known, schema, "ORDER BY")
    for part in ("limit", "offset"):
        bound = select.args.get(part)
        if bound is not None and not (isinstance(bound.expression, exp.Literal) and bound.expression.is_int):
            raise refused(bound, f"{part.upper()} is no whole number", f"ask {part.upper()} 10")
    return select


def _check_key(key: Tree, schema: TableSchema) -> None:
    from sqlglot import exp

    for call in key.find_all(exp.AggFunc):
        raise refused(call, f"{call.sql_name()} cannot stand in GROUP BY", "put it behind SELECT")
    private = private_names(key, schema)
    if not private:
        if not key.find(exp.Column):
            raise refused(key, "GROUP BY a constant", "group by a column")
        return
    if not isinstance(key, exp.Column):
        raise refused(key, f"{private[0]} is private: nobody's is known", f"ask GROUP BY {private[0]}, or WHERE")
    column = next(column for column in schema.private if column.name == private[0])
    if column.size > MOST_GROUPED:
        raise refused(key, f"{column.name} has {column.size:,} values", f"at most {MOST_GROUPED:,} are grouped by")


def _check_result(node: Tree, keys: set[str], schema: TableSchema, clause: str) -> None:
    """Refuse a result in which a column stands that is neither a key nor inside an aggregate."""
    from sqlglot import exp

    check_time()
    if node.sql("duckdb") in keys:
        return
    if isinstance(node, exp.AggFunc):
        for inner in [call for call in node.find_all(exp.AggFunc) if call is not node]:
            raise refused(inner, "an aggregate of an aggregate", "ask one of a public column")
        private = private_names(node, schema)
        if private:
            problem = f"{private[0]} is private: nobody's is known"
            instead = f"SUM, AVG and quantiles are of public columns; ask COUNT(*) ... GROUP BY {private[0]}"
            raise refused(node, problem, instead)
        return
    if isinstance(node, exp.Column):
        if private_names(node, schema):
            raise refused(
                node,
                f"{node.name} is private: nobody's is known",
                f"in {clause} it can stand with GROUP BY {node.name}",
            )
        raise refused(node, f"{node.name} is in no aggregate", f"ask SUM({node.name}), or GROUP BY {node.name}")
    for part in node.iter_expressions():
        _check_result(part, keys, schema, clause)
