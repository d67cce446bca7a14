"""Reads the records of a file or a data set in chunks, for a rehearsal of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import InvalidValue
from hubbub.query.private_table import BLOCK
from hubbub.query.sandbox import open_database, quote_name
from hubbub.query.schema import PublicColumn

if TYPE_CHECKING:
    from hubbub.data.table import Table

READERS = {".csv": "read_csv", ".tsv": "read_csv", ".parquet": "read_parquet", ".jsonl": "read_json"}
KINDS = (
    ("BOOLEAN", "BOOLEAN"),
    ("INT", "BIGINT"),
    ("DOUBLE", "DOUBLE"),
    ("FLOAT", "DOUBLE"),
    ("DECIMAL", "DOUBLE"),
    ("VARCHAR", "VARCHAR"),
    ("TIMESTAMP", "TIMESTAMP"),
    ("DATE", "DATE"),
)
MOST_NAMES = 4096
"""A column of more different texts is no list of names."""


class RecordSource:
    """A CSV, TSV, JSON lines or Parquet file, or one of the data sets census and adult.

    Parameters
    ----------
    source
        A file's path, or a data set's name.
    columns
        Those that will be read.
    """

    def __init__(self, source: str | Path, columns: Sequence[str]) -> None:
        self._connection = open_database()
        import duckdb

        path = Path(source)
        sets = _data_sets()
        try:
            if path.is_file():
                reader = READERS.get(path.suffix.lower())
                if reader is None:
                    raise InvalidValue("file", str(path), f"a file name that ends in {', '.join(READERS)}")
                where = str(path).replace("'", "''")
                self._connection.execute(f"CREATE VIEW records AS SELECT * FROM {reader}('{where}')")  # noqa: S608
            elif str(source) in sets:
                self._register(sets[str(source)](columns))
            else:
                raise InvalidValue("file", str(source), f"a file, or a data set: {', '.join(sets)}")
            columns_there = self._connection.execute("DESCRIBE records").fetchall()
        except duckdb.Error as error:
            raise InvalidValue("file", str(source), f"a file that can be read: {str(error).splitlines()[0]}") from None
        self._types = {row[0]: row[1] for row in columns_there}
        for column in columns:
            if column not in self._types:
                raise InvalidValue("column", column, f"one of {', '.join(self._types)}")
        self._columns = list(columns)
        self.n = int(self._connection.execute("SELECT COUNT(*) FROM records").fetchall()[0][0])

    def _register(self, table: Table) -> None:
        import pyarrow as pa

        arrays = pa.table({name: pa.array(values) for name, values in table.items()})
        self._connection.register("records", arrays)

    def public(self, names: Sequence[str]) -> tuple[PublicColumn, ...]:
        """Some columns as public ones, with their types."""
        columns = []
        for name in names:
            kind = next((kind for part, kind in KINDS if part in self._types[name]), None)
            if kind is None:
                raise InvalidValue(name, self._types[name], "a column of numbers, texts, truths or times")
            columns.append(PublicColumn(name, kind))
        return tuple(columns)

    def names(self, column: str) -> list[str]:
        """The different texts of a column."""
        name = quote_name(column)
        text = f"SELECT DISTINCT CAST({name} AS VARCHAR) AS x FROM records WHERE {name} IS NOT NULL"  # noqa: S608
        texts = self._connection.execute(f"SELECT x FROM ({text}) ORDER BY x LIMIT {MOST_NAMES + 1}").fetchall()  # noqa: S608
        if not 2 <= len(texts) <= MOST_NAMES:
            raise InvalidValue(column, len(texts), f"2 to {MOST_NAMES} different names, or a range: {column}=0..99")
        return [row[0] for row in texts]

    def chunks(self, texts: Sequence[str] = ()) -> Iterator[Any]:
        """The records in Arrow batches, some columns as texts."""
        selected = [
            f"CAST({quote_name(name)} AS VARCHAR) AS {quote_name(name)}" if name in texts else quote_name(name)
            for name in self._columns
        ]
        relation = self._connection.sql(f"SELECT {', '.join(selected)} FROM records")  # noqa: S608
        yield from (
            relation.to_arrow_reader(BLOCK)
            if hasattr(relation, "to_arrow_reader")
            else (relation.fetch_arrow_reader(BLOCK))
        )


def _data_sets() -> dict[str, Callable[[Sequence[str]], Table]]:
    def census(columns: Sequence[str]) -> Table:
        from hubbub.data import census

        return census(columns=columns)

    def adult(columns: Sequence[str]) -> Table:
        from hubbub.data import adult

        return adult()

    return {"census": census, "adult": adult}
