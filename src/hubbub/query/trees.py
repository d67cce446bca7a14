"""The expressions of sqlglot that queries are read as, and errors at a place in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from hubbub.core.errors import needs
from hubbub.query.errors import QueryError

with needs("sql"):
    from sqlglot import exp

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema

__all__ = ["Tree", "exp", "private_names", "refused"]

Tree: TypeAlias = Any
"""An expression of sqlglot, whose classes change from version to version; what a tree may be is checked as it runs."""


def refused(node: Tree, problem: str, instead: str = "") -> QueryError:
    """An error at a part of a query."""
    around: Tree | None = node
    starts: list[int] = []
    while around is not None and not starts:  # not every part knows its place
        starts = [part.meta["start"] for part in around.walk() if "start" in part.meta]
        around = around.parent
    return QueryError(problem, instead, start=min(starts, default=-1))


def private_names(node: Tree, schema: TableSchema) -> list[str]:
    """The private columns in an expression, in the order of the table."""
    present = {column.name for column in node.find_all(exp.Column)}
    return [column.name for column in schema.private if column.name in present]
