"""Builds a table from records by randomising each record as a device would: a rehearsal of a collection."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.protocols.ranges.hierarchy import LevelReports
from hubbub.query.sandbox import open_database, quote_name
from hubbub.query.schema import BLOCK, ROW, Level, PublicColumn, TableSchema
from hubbub.query.store_format import DuckWriter, ParquetWriter, StoreWriter, description_of, pack_reports
from hubbub.random.source import Random

if TYPE_CHECKING:
    import pyarrow as pa

    from hubbub.data.records import Table

Progress = Callable[[int], None]
"""Called with the number of records that are stored so far."""


def build_table(
    path: str | Path, schema: TableSchema, chunks: Iterable[object], *, rng: Random, progress: Progress | None = None
) -> int:
    """Store the reports of records, with their public columns; returns how many there are.

    One chunk and one block are in memory at a time. A path that ends in .duckdb becomes a DuckDB file, any other a
    folder of Parquet files. An existing path is refused; if building fails, nothing is left behind.

    `chunks`: records in columns by name, some at a time: Arrow tables or batches, or dictionaries of lists or arrays.
    """
    where = Path(path)
    if where.exists():
        raise InvalidValue("path", str(where), "a file or folder that is not there yet")
    if not where.absolute().parent.is_dir():
        raise InvalidValue("path", str(where), "a file or folder in a folder that exists")
    unfinished = where.with_name(f"{where.name}.unfinished")
    _remove(unfinished)
    duck = where.suffix == ".duckdb"
    writer: StoreWriter = (DuckWriter if duck else ParquetWriter)(unfinished, schema)
    try:
        try:
            n = _write(writer, schema, chunks, rng, progress)
        finally:
            writer.close()
        unfinished.rename(where)
    finally:
        _remove(unfinished)
    return n


def _write(
    writer: StoreWriter, schema: TableSchema, chunks: Iterable[object], rng: Random, progress: Progress | None
) -> int:
    import pyarrow as pa

    n = 0
    sizes: dict[Level, int] = {}
    for number, columns in enumerate(_blocks(schema, chunks)):
        size = len(next(iter(columns.values())))
        codes = [column.encode(columns[column.name].to_pylist()) for column in schema.private]
        reports = schema.randomize(np.stack(codes, axis=1), rng)
        own = {level: _moved(group, n) for level, group in reports.levels.items()}
        public: dict[str, pa.Array[Any]] = {ROW: pa.array(np.arange(n, n + size))}
        public |= {column.name: columns[column.name] for column in schema.public}
        writer.people(pa.table(public))
        writer.reports(number, pack_reports(n, own))
        for level, group in own.items():
            sizes[level] = sizes.get(level, 0) + group.rows.size
        n += size
        if progress is not None:
            progress(n)
    if n == 0:
        raise InvalidValue("records", 0, "at least one record: an empty table answers nothing")
    writer.describe(description_of(schema, sizes, n))
    return n


def _moved(group: LevelReports, start: int) -> LevelReports:
    """Reports in rising order of their rows, which are made rows of the table."""
    order = np.argsort(group.rows, kind="stable")
    return LevelReports(group.rows[order] + start, group.reports[order])


def _blocks(schema: TableSchema, chunks: Iterable[object]) -> Iterator[Mapping[str, pa.Array[Any]]]:
    """The records in blocks of `BLOCK` rows."""
    waiting: list[pa.Table] = []
    rows = 0
    for chunk in chunks:
        table = _arrow(chunk, schema)
        while table.num_rows:
            part = table.slice(0, BLOCK - rows)
            waiting.append(part)
            rows += part.num_rows
            table = table.slice(part.num_rows)
            if rows == BLOCK:
                yield _columns(waiting)
                waiting, rows = [], 0
    if rows:
        yield _columns(waiting)


def _columns(parts: list[pa.Table]) -> Mapping[str, pa.Array[Any]]:
    import pyarrow as pa

    try:
        table = pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidValue(
            "chunks", "columns of other types", f"the same in all: {str(error).splitlines()[0]}"
        ) from None
    return {name: table.column(name).combine_chunks() for name in table.column_names}


def _arrow(chunk: object, schema: TableSchema) -> pa.Table:
    import pyarrow as pa

    if isinstance(chunk, pa.RecordBatch):
        chunk = pa.Table.from_batches([chunk])
    if not isinstance(chunk, pa.Table):
        if not isinstance(chunk, Mapping):
            raise InvalidValue("chunks", type(chunk).__name__, "Arrow tables, or dictionaries of columns")
        chunk = pa.table({name: pa.array(values) for name, values in chunk.items()})
    missing = [name for name in schema.names if name not in chunk.column_names]
    if missing:
        raise InvalidValue("chunks", missing[0], f"records with the columns {', '.join(schema.names)}")
    arrays = {column.name: chunk.column(column.name) for column in schema.private}
    arrays |= {column.name: _typed(chunk.column(column.name), column.name, column.type) for column in schema.public}
    return pa.table(arrays)


def _typed(column: pa.ChunkedArray[Any], name: str, kind: str) -> pa.ChunkedArray[Any]:
    """A public column as the type that is declared."""
    import pyarrow as pa

    types = {
        "BOOLEAN": pa.bool_(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "VARCHAR": pa.string(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us"),
    }
    try:
        return column.cast(types[kind])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidValue(name, str(column.type), f"what can be {kind}: {str(error).splitlines()[0]}") from None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}.wal").unlink(missing_ok=True)


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
MOST_ROWS = 100_000
"""A public table that is joined has no more rows."""
MOST_NAMES = 4096
"""A column of more different texts is no list of names."""


class RecordSource:
    """A CSV, TSV, JSON lines or Parquet file, or one of the data sets census and adult.

    `source`: a file's path, or a data set's name.
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

    def chunks(self, texts: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
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


def read_rows(path: Path) -> dict[str, list[Any]]:
    """The rows of a file as a public table: columns of numbers, texts, truths and dates, as lists."""
    import duckdb

    reader = READERS.get(path.suffix.lower())
    if reader is None or not path.is_file():
        raise InvalidValue("file", str(path), f"a file whose name ends in {', '.join(READERS)}")
    where = str(path).replace("'", "''")
    try:
        connection = open_database()
        described = connection.execute(f"DESCRIBE SELECT * FROM {reader}('{where}')").fetchall()  # noqa: S608
        kinds = {row[0]: next((kind for part, kind in KINDS if part in row[1]), "VARCHAR") for row in described}
        cast = ", ".join(f"CAST({quote_name(name)} AS {kind}) AS {quote_name(name)}" for name, kind in kinds.items())
        rows = connection.execute(f"SELECT {cast} FROM {reader}('{where}') LIMIT {MOST_ROWS + 1}").fetchall()  # noqa: S608
    except duckdb.Error as error:
        raise InvalidValue("file", str(path), f"a file that can be read: {str(error).splitlines()[0]}") from None
    if len(rows) > MOST_ROWS:
        raise InvalidValue("file", f"{path} of more rows", f"at most {MOST_ROWS:,} rows")
    return {name: [row[place] for row in rows] for place, name in enumerate(kinds)}


def _data_sets() -> dict[str, Callable[[Sequence[str]], Table]]:
    def census(columns: Sequence[str]) -> Table:
        from hubbub.data import census

        return census(columns=columns)

    def adult(columns: Sequence[str]) -> Table:
        from hubbub.data import adult

        return adult()

    return {"census": census, "adult": adult}
