"""Public tables that a query joins with a private one, on public columns; and what DESCRIBE and SHOW TABLES list."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import InvalidValue
from hubbub.query.answer import AnswerColumn, QueryAnswer
from hubbub.query.errors import QueryError, did_you_mean
from hubbub.query.rules.conditions import conjuncts, number
from hubbub.query.sandbox import quote_name
from hubbub.query.schema import Level, PrivateTable, PublicColumn, TableSchema
from hubbub.query.trees import Tree, exp, refused

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from hubbub.protocols.ranges.hierarchy import LevelReports

PublicTables = Mapping[str, Mapping[str, Sequence[Any]]]
"""Public tables by name: for each column its values, of the same number."""
MOST_CELLS = 1_000_000
MOST_JOINS = 8


class JoinedTable(PrivateTable):
    """A private table whose people have the columns of public tables too: each person is in at most one row of each."""

    def __init__(self, table: PrivateTable, schema: TableSchema, relation: str) -> None:
        self.schema, self._table, self._relation = schema, table, relation

    @property
    def n(self) -> int:
        return self._table.n

    @property
    def relation(self) -> str:
        return self._relation

    def connection(self) -> DuckDBPyConnection:
        return self._table.connection()

    def level_sizes(self) -> Mapping[Level, int]:
        return self._table.level_sizes()

    def reports(self, level: Level, rows: range) -> LevelReports | None:
        return self._table.reports(level, rows)

    def blocks(self) -> Sequence[range]:
        return self._table.blocks()


@contextmanager
def joined(select: Tree, table: PrivateTable, tables: PublicTables | None) -> Iterator[PrivateTable]:
    """The table that a query with merged sub-queries is of. Its joins are taken out of it, and its columns named."""
    joins = select.args.get("joins") or []
    if not joins:
        yield table
        return
    if len(joins) > MOST_JOINS:
        raise refused(joins[MOST_JOINS], "there are too many joins", f"at most {MOST_JOINS} are answered")
    connection = table.connection()
    registered: list[str] = []
    try:
        source = _Joins(select, table)
        for join in joins:
            rows, alias = _rows(join, tables or {}, table.schema)
            name = f"#{blake2b(_content(rows), digest_size=12).hexdigest()}"
            connection.register(name, rows)
            registered.append(name)
            source.add(join, rows, name, alias)
        yield source.finished()
    finally:
        for name in registered:
            connection.unregister(name)


def _content(rows: pa.Table) -> bytes:
    return repr((rows.schema.to_string(), rows.to_pydict())).encode()


def _rows(join: Tree, tables: PublicTables, schema: TableSchema) -> tuple[pa.Table, str]:
    """The public table of a join, and what it is called."""
    source = join.this
    alias = source.alias_or_name
    names = (
        [column.name for column in (source.args["alias"].args.get("columns") or [])] if source.args.get("alias") else []
    )
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
        inner = source.this
        plain = len(inner.expressions) == 1 and isinstance(inner.expressions[0], exp.Star)
        only = not [part for part, value in inner.args.items() if value and part not in ("expressions", "from_")]
        values = inner.args["from_"].this if inner.args.get("from_") is not None else None
        if plain and only and isinstance(values, exp.Values):
            own = [column.name for column in values.args["alias"].args.get("columns") or ()]
            return arrow_table(alias, _listed(values, names or own)), alias
    if isinstance(source, exp.Values):
        return arrow_table(alias, _listed(source, names)), alias
    if isinstance(source, exp.Table) and not source.args.get("db"):
        folded = {name.casefold(): name for name in tables}
        if source.name.casefold() in folded:
            return arrow_table(source.name, tables[folded[source.name.casefold()]]), alias
        if source.name.casefold() == schema.name.casefold():
            raise refused(join, f"{schema.name} is joined with itself", "join it with a public table")
        known = did_you_mean(source.name, tables) or "there is none; write its rows: JOIN (VALUES (...)) AS t(a, b)"
        raise refused(join, f"unknown public table {source.name}", known)
    raise refused(join, "only a public table or VALUES can be joined", "JOIN (VALUES (1, 'a')) AS t(a, b) USING (a)")


def _listed(values: Tree, names: Sequence[str]) -> Mapping[str, Sequence[Any]]:
    rows = [[_literal(cell) for cell in row.expressions] for row in values.expressions]
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        raise refused(values, "rows of VALUES have different lengths", "write every row with all columns")
    (width,) = widths
    names = names or [f"col{place}" for place in range(width)]
    if len(names) != width:
        raise refused(values, f"{width} columns have {len(names)} names", "name each column")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _literal(cell: Tree) -> object:
    constant = number(cell)
    if constant is not None:
        return constant
    if isinstance(cell, exp.Null):
        return None
    if isinstance(cell, exp.Boolean):
        return bool(cell.this)
    if isinstance(cell, exp.Literal):
        return str(cell.name)
    if isinstance(cell, exp.Cast) and isinstance(cell.this, exp.Literal) and cell.to.this.name == "DATE":
        try:
            return datetime.date.fromisoformat(cell.this.name)
        except ValueError:
            raise refused(cell, f"{cell.this.name} is no date", "write DATE '2026-01-31'") from None
    raise refused(cell, "VALUES hold numbers, texts, dates, TRUE, FALSE and NULL", "write the value itself")


def arrow_table(name: str, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """A public table; refused if it is no table, or too large."""
    import pyarrow as pa

    if not isinstance(columns, Mapping) or not columns or len({len(values) for values in columns.values()}) != 1:
        raise InvalidValue("tables", name, "columns by name, each a list of values, all of the same length")
    size = len(columns) * len(next(iter(columns.values())))
    if size > MOST_CELLS:
        raise InvalidValue("tables", f"{name} with {size:,} values", f"at most {MOST_CELLS:,}")
    try:
        return pa.table({column: _typed(values) for column, values in columns.items()})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidValue("tables", name, f"values of one type in each column: {str(error).splitlines()[0]}") from None


def _typed(values: Sequence[Any]) -> Any:
    import pyarrow as pa

    array = pa.array(
        [float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in values]
        if any(isinstance(value, float) for value in values)
        else list(values)
    )
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


TYPE_NAMES = {"bool": "BOOLEAN", "int64": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "date32[day]": "DATE"}
TYPE_NAMES |= {"timestamp[us]": "TIMESTAMP"}


class _Joins:
    """The relation of a table and the public tables that are joined so far."""

    def __init__(self, select: Tree, table: PrivateTable) -> None:
        self._select, self._table = select, table
        base = select.args["from_"].this
        self._base = {base.alias_or_name.casefold(), table.schema.name.casefold()}
        self._columns: dict[tuple[str | None, str], str] = {
            (None, name.casefold()): name for name in table.schema.names
        }
        self._added: list[PublicColumn] = []
        self._relation = table.relation

    def add(self, join: Tree, rows: pa.Table, name: str, alias: str) -> None:
        kind, side = str(join.args.get("kind") or "").upper(), str(join.args.get("side") or "").upper()
        if kind not in ("", "INNER", "OUTER") or side not in ("", "LEFT") or join.args.get("method"):
            word = " ".join(filter(None, (str(join.args.get("method") or ""), side, kind)))
            raise refused(join, f"{word} JOIN is not answered", "ask JOIN or LEFT JOIN")
        if alias.casefold() in self._base or any(alias.casefold() == of for of, _ in self._columns):
            raise refused(join, f"two tables are called {alias}", "give them different names")
        keys = [self._compared(join, rows, mine, own) for mine, own in self._keys(join, rows, alias)]
        self._check_unique(join, name, [own for _, own in keys], alias)
        names = {}
        for column in rows.column_names:
            kind_name = TYPE_NAMES.get(str(rows.schema.field(column).type))
            if kind_name is None:
                raise refused(join, f"{alias}.{column} is {rows.schema.field(column).type}", "numbers, texts, dates")
            taken = any(column.casefold() == known.casefold() for known in self._columns.values())
            names[column] = f"{alias}.{column}" if taken else column
            self._added.append(PublicColumn(names[column], kind_name))
        for column, known in names.items():
            self._columns[alias.casefold(), column.casefold()] = known
        on = " AND ".join(f"{left} = {right}" for left, right in keys)
        more = ", ".join(f"j.{quote_name(column)} AS {quote_name(known)}" for column, known in names.items())
        how = "LEFT JOIN" if side == "LEFT" else "JOIN"
        self._relation = f"(SELECT p.*, {more} FROM {self._relation} p {how} {quote_name(name)} j ON {on})"  # noqa: S608

    def _keys(self, join: Tree, rows: pa.Table, alias: str) -> list[tuple[str, str]]:
        """The columns of people, and of the rows, that must be equal."""
        using, on = join.args.get("using"), join.args.get("on")
        own = {column.casefold(): column for column in rows.column_names}
        if using:
            return [(self._public(column, None, join), self._own(column, own, alias)) for column in using]
        if on is None:
            raise refused(join, "a join has no ON", f"ask JOIN {alias} ON ... = ..., or USING (...)")
        keys = []
        for part in conjuncts(on):
            sides: list[Tree] = [part.left, part.right] if isinstance(part, exp.EQ) else []
            if not all(isinstance(side, exp.Column) for side in sides) or not sides:
                raise refused(
                    part, "ON is answered for equal public columns alone", "put other conditions behind WHERE"
                )
            mine = [side.table.casefold() == alias.casefold() for side in sides]
            if not any(mine) and any(not side.table for side in sides):  # a name without its table
                mine = [not side.table and side.name.casefold() in own for side in sides]
            if sum(mine) != 1:
                raise refused(part, f"one side of = is of {alias}, the other of {self._table.schema.name}")
            other, column = sides[mine.index(False)], sides[mine.index(True)]
            keys.append((self._public(other, other.table, part), self._own(column, own, alias)))
        return keys

    def _public(self, column: Tree, qualifier: str | None, where: Tree) -> str:
        of = None if not qualifier or qualifier.casefold() in self._base else qualifier.casefold()
        name = self._columns.get((of, column.name.casefold()))
        if name is None:
            raise refused(where, f"unknown column {column.name}", did_you_mean(column.name, self._columns.values()))
        if any(private.name == name for private in self._table.schema.private):
            raise refused(where, f"{name} is private: nobody's is known", "join on public columns")
        return name

    @staticmethod
    def _own(column: Tree, own: Mapping[str, str], alias: str) -> str:
        if column.name.casefold() not in own:
            raise refused(column, f"unknown column {column.name} of {alias}", did_you_mean(column.name, own.values()))
        return own[column.name.casefold()]

    def _compared(self, join: Tree, rows: pa.Table, mine: str, own: str) -> tuple[str, str]:
        """Both sides of an equality, as SQL of one type: equal values of another type would not be told apart."""
        public = (*self._table.schema.public, *self._added)
        left = next(column.type for column in public if column.name == mine)
        right = TYPE_NAMES.get(str(rows.schema.field(own).type), "")
        sides = f"p.{quote_name(mine)}", f"j.{quote_name(own)}"
        if {left, right} == {"BIGINT", "DOUBLE"}:
            return f"CAST({sides[0]} AS DOUBLE)", f"CAST({sides[1]} AS DOUBLE)"
        if left != right:
            raise refused(join, f"{mine} is {left}, and {own} is {right or 'of another type'}", "join equal types")
        return sides

    def _check_unique(self, join: Tree, name: str, keys: Sequence[str], alias: str) -> None:
        """Refuse rows of which a person could be in several: the person would count several times."""
        known, listed = " AND ".join(f"{key} IS NOT NULL" for key in keys), ", ".join(keys)
        text = f"SELECT 1 FROM {quote_name(name)} j WHERE {known} GROUP BY {listed} HAVING COUNT(*) > 1 LIMIT 1"  # noqa: S608
        if self._table.connection().execute(text).fetchall():
            columns = ", ".join(key.partition('"')[2].partition('"')[0] for key in keys)
            problem = f"{columns} is not unique in {alias}: a person would count several times"
            raise refused(join, problem, "join rows of which each person has one at most")

    def finished(self) -> PrivateTable:
        """The joined table; the columns of the query are named as in it."""
        schema = replace(self._table.schema, public=(*self._table.schema.public, *self._added))
        self._select.set("joins", None)
        for column in self._select.find_all(exp.Column):
            of = column.table.casefold() if column.table else None
            known = [name for (alias, own), name in self._columns.items() if own == column.name.casefold() and alias]
            if of is None and (None, column.name.casefold()) not in self._columns and len(known) == 1:
                of = next(alias for alias, own in self._columns if own == column.name.casefold() and alias)
            if of is not None and of not in self._base and (of, column.name.casefold()) in self._columns:
                column.set("this", exp.to_identifier(self._columns[of, column.name.casefold()], quoted=True))
                column.set("table", None)
        return JoinedTable(self._table, schema, self._relation)


def listing(schema: TableSchema, described: str, n: int, level: float, tables: PublicTables | None) -> QueryAnswer:
    """What DESCRIBE lists of a table, or SHOW TABLES of all tables."""
    public = dict(tables or {})
    if not described:
        rows: list[tuple[str, ...]] = [(schema.name, "private"), *((name, "public") for name in public)]
        return QueryAnswer(tuple(AnswerColumn(name, False) for name in ("name", "kind")), tuple(rows), level, n)
    names = ("column_name", "column_type", "kind", "values")
    columns = tuple(AnswerColumn(name, False) for name in names)
    folded = {name.casefold(): name for name in public}
    if described.casefold() in folded:
        rows_of = arrow_table(described, public[folded[described.casefold()]])
        return QueryAnswer(
            columns,
            tuple(
                (field.name, TYPE_NAMES.get(str(field.type), str(field.type)), "public", "") for field in rows_of.schema
            ),
            level,
            n,
        )
    if described.casefold() != schema.name.casefold():
        raise QueryError(f"unknown table {described}", did_you_mean(described, [schema.name, *public]))
    rows = [
        (
            column.name,
            "BIGINT"
            if column.domain.kind == "ordinal"
            else "VARCHAR"
            if column.domain.kind == "categorical"
            else "cells",
            "private",
            f"{column.domain.describe()}{', or NULL' if column.missing else ''}",
        )
        for column in schema.private
    ]
    rows += [(column.name, column.type, "public", "") for column in schema.public]
    return QueryAnswer(columns, tuple(rows), level, n)
