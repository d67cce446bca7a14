"""Which columns an expression reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema


def private_names(node: Tree, schema: TableSchema) -> list[str]:
    """The private columns in an expression, in the order of the table."""
    from sqlglot import exp

    present = {column.name for column in node.find_all(exp.Column)}
    return [column.name for column in schema.private if column.name in present]
