"""Gives every column the name that the table has for it, and refuses unknown ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.query.errors import did_you_mean, refused
from hubbub.query.tree import Tree

if TYPE_CHECKING:
    from hubbub.query.schema import TableSchema


def resolve_columns(select: Tree, schema: TableSchema) -> Tree:
    """The query with every name quoted and spelt as in the table, without the table's name before it."""
    from sqlglot import exp

    spelling = {name.casefold(): name for name in schema.names}
    table = select.args["from_"].this
    known_as = {schema.name.casefold(), table.alias_or_name.casefold()}
    for column in select.find_all(exp.Column):
        if column.args.get("db") or (column.table and column.table.casefold() not in known_as):
            raise refused(column, f"unknown table {column.table}", did_you_mean(column.table, known_as))
        name = spelling.get(column.name.casefold())
        if name is None:
            raise refused(column, f"unknown column {column.name}", did_you_mean(column.name, spelling.values()))
        column.set("table", None)
        column.this.set("this", name)
        column.this.set("quoted", True)
    for alias in select.find_all(exp.Alias):
        alias.args["alias"].set("quoted", True)
    table.replace(exp.to_table(exp.to_identifier(schema.name, quoted=True).sql("duckdb"), dialect="duckdb"))
    return select
