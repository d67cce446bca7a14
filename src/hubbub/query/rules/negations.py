"""Moves NOT down to single conditions, so that only AND and OR are left above them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema


def push_negations(select: Tree, schema: TableSchema) -> Tree:
    """The query whose WHERE has NOT only before IN, IS NULL, LIKE and functions.

    By de Morgan's laws, which hold for unknown (NULL) as well: a condition selects the same people as before.
    """
    where = select.args.get("where")
    if where is not None:
        where.set("this", _pushed(where.this, False))
    return select


def _pushed(node: Tree, negated: bool) -> Tree:
    from sqlglot import exp

    opposite: dict[type[Tree], type[Tree]] = {
        exp.EQ: exp.NEQ,
        exp.NEQ: exp.EQ,
        exp.LT: exp.GTE,
        exp.GTE: exp.LT,
        exp.GT: exp.LTE,
        exp.LTE: exp.GT,
    }
    if isinstance(node, exp.Paren):
        return _pushed(node.this, negated)
    if isinstance(node, exp.Not):
        return _pushed(node.this, not negated)
    if isinstance(node, exp.And | exp.Or):
        left, right = _pushed(node.left, negated), _pushed(node.right, negated)
        if isinstance(node, exp.And) != negated:
            return exp.And(this=_bracketed(left), expression=_bracketed(right))
        return exp.Or(this=left, expression=right)
    if not negated:
        return node
    if type(node) in opposite:
        return opposite[type(node)](this=node.this, expression=node.expression)
    if isinstance(node, exp.Between):
        below = exp.LT(this=node.this, expression=node.args["low"])
        return exp.Or(this=below, expression=exp.GT(this=node.this.copy(), expression=node.args["high"]))
    if isinstance(node, exp.Boolean):
        return exp.Boolean(this=not node.this)
    return exp.Not(this=node)


def _bracketed(node: Tree) -> Tree:
    from sqlglot import exp

    return exp.Paren(this=node) if isinstance(node, exp.Or) else node
