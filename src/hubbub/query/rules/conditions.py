"""Rules for conditions: computed constants, one form of comparisons, NOT moved inward, public conditions first."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

from hubbub.query.trees import Tree, exp, private_names, refused

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

LARGEST = 1e300
"""Literals from here on are infinite."""


def holders(select: Tree, schema: TableSchema) -> list[Tree]:
    """What has a condition that is a formula: WHERE, and each branch of a CASE in an aggregate of private columns."""
    where = select.args.get("where")
    branches = [
        branch
        for call in select.find_all(exp.AggFunc)
        if private_names(call, schema)
        for branch in call.find_all(exp.If)
        if private_names(branch.this, schema)
    ]
    return [*([] if where is None else [where]), *branches]


def fold_constants(select: Tree, schema: TableSchema) -> Tree:
    """Replace arithmetic of constants that a private column is compared with by its result.

    That of public conditions is the database's, whose numbers are decimals: 0.1 + 0.2 is 0.3.
    """
    for holder in holders(select, schema):
        holder.set("this", _folded_inside(holder.this, schema))
    return select


def _folded_inside(node: Tree, schema: TableSchema) -> Tree:
    """Compute the constants in the comparisons of private columns."""
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
    """The number of a literal, with its sign; None if the node is no number."""
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


def arrange_comparisons(select: Tree, schema: TableSchema) -> Tree:
    """Write `3 < age` as `age > 3`, and `age IN (3)` as `age = 3`."""
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

    for holder in holders(select, schema):
        holder.set("this", holder.this.transform(arranged, copy=False).transform(arranged, copy=False))
    return select


def push_negations(select: Tree, schema: TableSchema) -> Tree:
    """Move NOT inward, until it is only before IN, IS NULL, LIKE and functions.

    By de Morgan's laws, which hold for unknown (NULL) as well: a condition selects the same people as before.
    """
    for holder in holders(select, schema):
        holder.set("this", _pushed(holder.this, False))
    return select


def _pushed(node: Tree, negated: bool) -> Tree:
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
    return exp.Paren(this=node) if isinstance(node, exp.Or) else node


def put_public_first(select: Tree, schema: TableSchema) -> Tree:
    """Move the conditions on public columns alone to the beginning of WHERE; the other conditions keep their order."""
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
    if isinstance(node, exp.And):
        return [*conjuncts(node.left), *conjuncts(node.right)]
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.And):
        return conjuncts(node.this)
    return [node]
