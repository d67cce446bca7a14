"""Works out arithmetic of numbers that a private column is compared with."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from hubbub.query.errors import refused
from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema


def fold_constants(select: Tree, schema: TableSchema) -> Tree:
    """The query with sums, differences, products and quotients of numbers in WHERE replaced by what they are.

    Example:
        >>> from sqlglot import parse_one
        >>> fold_constants(parse_one("SELECT 1 FROM t WHERE age < 10 * (2 + 4)"), None).args["where"].sql()
        'WHERE age < 60'
    """
    where = select.args.get("where")
    if where is not None:
        where.set("this", where.this.transform(_folded, copy=False))
        for _ in range(8):  # each pass works out one more layer
            before = where.sql()
            where.set("this", where.this.transform(_folded, copy=False))
            if where.sql() == before:
                break
    return select


def number(node: Tree) -> int | float | None:
    """The number that a literal is, with its sign; None if it is none.

    Example:
        >>> from sqlglot import parse_one
        >>> number(parse_one("-2.5")), number(parse_one("'a'"))
        (-2.5, None)
    """
    from sqlglot import exp

    if isinstance(node, exp.Paren):
        return number(node.this)
    if isinstance(node, exp.Neg):
        inner = number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string:
        return int(node.name) if node.is_int else float(node.name)
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
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    literal = exp.Literal.number(abs(value))
    literal.meta.update(next((part.meta for part in node.walk() if "start" in part.meta), {}))
    return exp.Neg(this=literal) if value < 0 else literal
