"""Puts a private column left of what it is compared with, and unfolds what single comparisons say shorter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.columns_of import private_names
from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema


def arrange_comparisons(select: Tree, schema: TableSchema) -> Tree:
    """The query with `3 < age` as `age > 3`, and `age IN (3)` as `age = 3`."""
    from sqlglot import exp

    flipped: dict[type[Tree], type[Tree]] = {
        exp.EQ: exp.EQ,
        exp.NEQ: exp.NEQ,
        exp.LT: exp.GT,
        exp.GT: exp.LT,
        exp.LTE: exp.GTE,
        exp.GTE: exp.LTE,
    }

    def arranged(node: Tree) -> Tree:
        if type(node) in flipped and not private_names(node.left, schema) and private_names(node.right, schema):
            return flipped[type(node)](this=node.right, expression=node.left)
        if isinstance(node, exp.In) and len(node.expressions) == 1 and private_names(node.this, schema):
            return exp.EQ(this=node.this, expression=node.expressions[0])
        if isinstance(node, exp.Not) and isinstance(node.this, exp.EQ) and private_names(node.this, schema):
            return exp.NEQ(this=node.this.this, expression=node.this.expression)
        return node

    where = select.args.get("where")
    if where is not None:
        where.set("this", where.this.transform(arranged, copy=False).transform(arranged, copy=False))
    return select
