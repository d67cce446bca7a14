"""Builds a table from records by randomising each record as a device would: a rehearsal of a collection."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.query.memory_table import levels_of
from hubbub.query.private_table import BLOCK, Level
from hubbub.query.schema import ROW, TableSchema
from hubbub.query.store_format import DuckWriter, ParquetWriter, StoreWriter, description_of, pack_reports

Progress = Callable[[int], None]
"""Called with the number of records that are stored so far."""


def build_table(
    path: str | Path,
    schema: TableSchema,
    chunks: Iterable[Any],
    *,
    rng: Random,
    progress: Progress | None = None,
) -> int:
    """Store the reports of records, with their public columns; returns how many there are.

    One chunk and one block are in memory at a time. A path that ends in .duckdb becomes a DuckDB file, any other a
    folder of Parquet files. An existing path is refused; if building fails, nothing is left behind.

    Parameters
    ----------
    path
        Where the table is stored.
    schema
        Its columns, and how people report.
    chunks
        Records in columns by name, some at a time: Arrow tables or batches, or dictionaries of lists or arrays.
    rng
        The randomness of the devices.
    progress
        Called after each block.
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
    writer: StoreWriter, schema: TableSchema, chunks: Iterable[Any], rng: Random, progress: Progress | None
) -> int:
    import pyarrow as pa

    n = 0
    sizes: dict[Level, int] = {}
    for number, columns in enumerate(_blocks(schema, chunks)):
        size = len(next(iter(columns.values())))
        codes = [column.encode(columns[column.name].to_pylist()) for column in schema.private]
        reports = schema.mechanism.randomize(np.stack(codes, axis=1), rng)
        own = {level: _moved(group, n) for level, group in levels_of(reports).items()}
        public = {ROW: pa.array(np.arange(n, n + size))}
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


def _moved(group: Any, start: int) -> Any:
    """Reports in rising order of their rows, which are made rows of the table."""
    order = np.argsort(group.rows, kind="stable")
    return type(group)(group.rows[order] + start, group.reports[order])


def _blocks(schema: TableSchema, chunks: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """The records in blocks of `BLOCK` rows."""
    waiting: list[Any] = []
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


def _columns(parts: list[Any]) -> Mapping[str, Any]:
    import pyarrow as pa

    try:
        table = pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidValue(
            "chunks", "columns of other types", f"the same in all: {str(error).splitlines()[0]}"
        ) from None
    return {name: table.column(name).combine_chunks() for name in table.column_names}


def _arrow(chunk: Any, schema: TableSchema) -> Any:
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


def _typed(column: Any, name: str, kind: str) -> Any:
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
