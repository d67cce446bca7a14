"""Puts conditions on public columns before those on private ones: they are looked up exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.columns_of import private_names
from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema


def put_public_first(select: Tree, schema: TableSchema) -> Tree:
    """The query whose WHERE begins with what rests on public columns alone; the order of all else stays."""
    from sqlglot import exp

    where = select.args.get("where")
    if where is None:
        return select
    parts = conjuncts(where.this)
    ordered = sorted(parts, key=lambda part: bool(private_names(part, schema)))
    joined = ordered[0]
    for part in ordered[1:]:
        joined = exp.And(this=joined, expression=part)
    where.set("this", joined)
    return select


def conjuncts(node: Tree) -> list[Tree]:
    """The conditions that must all hold."""
    from sqlglot import exp

    if isinstance(node, exp.And):
        return [*conjuncts(node.left), *conjuncts(node.right)]
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.And):
        return conjuncts(node.this)
    return [node]
