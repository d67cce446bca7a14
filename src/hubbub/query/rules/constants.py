"""Works out arithmetic of numbers that a private column is compared with."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

from hubbub.query.columns_of import private_names
from hubbub.query.errors import refused
from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

LARGEST = 1e300
"""Literals from here on are infinite."""


def fold_constants(select: Tree, schema: TableSchema) -> Tree:
    """The query with arithmetic of numbers that private columns are compared with replaced by what it comes to.

    That of public conditions is the database's, whose numbers are decimals: 0.1 + 0.2 is 0.3.
    """
    where = select.args.get("where")
    if where is not None:
        where.set("this", _folded_inside(where.this, schema))
    return select


def _folded_inside(node: Tree, schema: TableSchema) -> Tree:
    """A condition with the single conditions on private columns worked out."""
    from sqlglot import exp

    if isinstance(node, exp.And | exp.Or | exp.Not | exp.Paren):
        for part, inner in list(node.args.items()):
            if isinstance(inner, exp.Expression):
                node.set(part, _folded_inside(inner, schema))
        return node
    if private_names(node, schema):
        for _ in range(9):  # each pass works out one more layer
            before = node.sql()
            node = node.transform(_folded, copy=False)
            if node.sql() == before:
                break
    return node


def number(node: Tree) -> int | float | None:
    """The number that a literal is, with its sign; None if it is none."""
    from sqlglot import exp

    if isinstance(node, exp.Paren):
        return number(node.this)
    if isinstance(node, exp.Neg):
        inner = number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string:
        value = int(node.name) if node.is_int else float(node.name)
        return value if abs(value) < LARGEST else math.inf
    return None


def _folded(node: Tree) -> Tree:
    from sqlglot import exp

    operations = {exp.Add: operator.add, exp.Sub: operator.sub, exp.Mul: operator.mul, exp.Div: operator.truediv}
    if isinstance(node, exp.Paren) and number(node.this) is not None:
        return node.this
    if type(node) not in operations:
        return node
    left, right = number(node.left), number(node.right)
    if left is None or right is None:
        return node
    if isinstance(node, exp.Div) and right == 0:
        raise refused(node, "division by 0")
    value = operations[type(node)](left, right)
    if math.isnan(value):
        raise refused(node, "it is no number", "compare with a number")
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    literal = exp.Literal.number(abs(value))
    literal.meta.update(next((part.meta for part in node.walk() if "start" in part.meta), {}))
    return exp.Neg(this=literal) if value < 0 else literal
