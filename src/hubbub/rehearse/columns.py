"""One column of a file, as text in batches, as labels and codes, or as numbers: CSV, TSV, JSON lines and Parquet."""

import csv
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hubbub.core.errors import InvalidValue, needs
from hubbub.core.reports import Floats, Ints

_SHOWN = 30  # names in an error
_LOOKED_AT = 20  # rows that `first_rows` returns
_BATCH = 1 << 16  # rows
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
Batch = list[str | None]
"""Consecutive values of a column; None for a row without a value."""


def column_batches(path: Path, column: str, *, gaps: bool = False, any_bytes: bool = False) -> Iterator[Batch]:
    """The values of a column, in the order of the rows.

    `gaps`: whether a blank line between the rows of a file with a single column is a row without a value. `any_bytes`:
    whether bytes of a Parquet file that are not UTF-8 become lone surrogates instead of being refused.
    """
    if not path.is_file():
        raise InvalidValue("path", str(path), "a file that exists")
    readers = {
        ".csv": lambda: _delimited(path, column, gaps),
        ".tsv": lambda: _delimited(path, column, gaps),
        ".jsonl": lambda: _json_lines(path, column),
        ".ndjson": lambda: _json_lines(path, column),
        ".parquet": lambda: _parquet(path, column, any_bytes),
    }
    if path.suffix.lower() not in readers:
        raise InvalidValue("path", str(path), f"a file whose name ends in {', '.join(readers)}")
    try:
        yield from readers[path.suffix.lower()]()
    except UnicodeDecodeError:
        raise InvalidValue("path", str(path), "a file in UTF-8") from None


def row_name(path: Path, place: int) -> str:
    """The name of a row in errors: its number from 1 on, and in a text file the line that it ends in."""
    row = f"row {place + 1:,}"
    lines: Iterator[int]
    if path.suffix.lower() in _DELIMITERS:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=_DELIMITERS[path.suffix.lower()])
            header = next(reader, [])
            lines = (line for line, _ in _filled_rows(reader, len(header) == 1))
            return f"{row} (line {next(islice(lines, place, None)):,})"
    if path.suffix.lower() == ".parquet":
        return row
    with path.open(encoding="utf-8-sig") as file:
        lines = (number for number, line in enumerate(file, start=1) if line.strip())
        return f"{row} (line {next(islice(lines, place, None)):,})"


def first_rows(path: Path) -> dict[str, list[str]]:
    """The first values of each column of a file, by the name of the column; rows without a value are left out."""
    try:
        for _ in column_batches(path, "\0"):  # no column has this name
            pass
    except _NoColumn as missing:
        batches = {name: next(column_batches(path, name), [])[:_LOOKED_AT] for name in missing.names}
        return {name: [value for value in batch if value is not None] for name, batch in batches.items()}
    return {}


def one_of(names: Sequence[str]) -> str:
    """The allowed names, for an error message; only the first if there are many."""
    return f"one of {', '.join(names[:_SHOWN])}" + (", ..." if len(names) > _SHOWN else "")


class _NoColumn(InvalidValue):
    """The file has no column of this name; `names` are the columns that it has."""

    def __init__(self, column: str, names: list[str]) -> None:
        super().__init__("column", column, one_of(names))
        self.names = names


def _delimited(path: Path, column: str, gaps: bool) -> Iterator[Batch]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter=_DELIMITERS[path.suffix.lower()], strict=True)
        try:
            header = next(rows, [])
            if not header:
                raise InvalidValue("path", str(path), "a file with a header line and at least one row")
            place = _place(column, header)
            batch: Batch = []
            for line, row in _filled_rows(rows, gaps and len(header) == 1):
                if len(row) > len(header):
                    fields = f"{len(row)} fields in line {line}"
                    raise InvalidValue("path", fields, f"{len(header)} fields a line, as in the header")
                batch.append(row[place].strip() or None if place < len(row) else None)
                if len(batch) == _BATCH:
                    yield batch
                    batch = []
            yield batch
        except csv.Error as error:
            raise InvalidValue("path", f"line {rows.line_num}", f"well-formed fields: {error}") from None


def _filled_rows(rows: Any, gaps: bool) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV reader, each with the number of the line that it ends in.

    Blank lines are left out; but with `gaps`, a blank line that is followed by a row counts as a row without a value.
    """
    blank: list[int] = []
    for row in rows:
        if row:
            for line in blank:
                yield line, row[:0]
            blank.clear()
            yield rows.line_num, row
        elif gaps:
            blank.append(rows.line_num)


def _json_lines(path: Path, column: str) -> Iterator[Batch]:
    names: dict[str, None] = {}
    batch: Batch = []
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:  # numbers as they are written
                record = json.loads(line, parse_float=str, parse_int=str, parse_constant=lambda _: None)
            except ValueError:
                raise InvalidValue("path", f"line {number}: {line.strip()}", "a JSON object in each line") from None
            if not isinstance(record, dict):
                raise InvalidValue("path", f"line {number}: {line.strip()}", "a JSON object in each line")
            names.update(dict.fromkeys(record))
            batch.append(_text(record.get(column), column))
            if len(batch) == _BATCH:
                yield batch
                batch = []
    if names:
        _place(column, list(names))
    yield batch


def _text(value: Any, column: str) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value.strip() or None if value else None
    raise InvalidValue(column, value, "text, numbers, true, false or null")


def _parquet(path: Path, column: str, any_bytes: bool) -> Iterator[Batch]:
    with needs("analytics"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        with pq.ParquetFile(path) as file:
            _place(column, file.schema_arrow.names)
            for batch in file.iter_batches(columns=[column]):
                cells = batch.column(0)
                if pa.types.is_floating(cells.type):
                    cells = pa.array(cells.to_numpy(zero_copy_only=False), from_pandas=True)  # NaN is no value
                binary = pa.types.is_binary(cells.type) or pa.types.is_large_binary(cells.type)
                words = (
                    _decoded(cells.to_pylist(), column, any_bytes) if binary else cells.cast(pa.string()).to_pylist()
                )
                yield [word.strip() or None if word is not None else None for word in words]
    except pa.ArrowNotImplementedError:
        raise InvalidValue("column", column, "a column of text, numbers, times or booleans") from None
    except pa.ArrowInvalid as error:
        raise InvalidValue("path", str(path), f"a Parquet file: {error}") from None


def _decoded(cells: list[bytes | None], column: str, any_bytes: bool) -> list[str | None]:
    try:
        errors = "surrogateescape" if any_bytes else "strict"
        return [None if cell is None else cell.decode("utf-8", errors) for cell in cells]
    except UnicodeDecodeError as error:
        raise InvalidValue("column", column, f"a column in UTF-8, which {error.object[:20]!r} is not") from None


def _place(column: str, names: list[str]) -> int:
    if column not in names:
        raise _NoColumn(column, names)
    if names.count(column) != 1:
        raise InvalidValue("column", column, "a name that only one column has")
    return names.index(column)


MISSING = "(missing)"
MOST_LABELS = 1_000_000


class CodedColumn(NamedTuple):
    """The distinct values of a column in order, and the code of each row's value."""

    labels: tuple[str, ...]
    codes: Ints
    missing: int


def read_column(path: Path, column: str, *, any_bytes: bool = False) -> CodedColumn:
    """Read a column as text. Numbers stay as they are written; a row without a value gets the label "(missing)".

    Bytes of a Parquet file that are not UTF-8 are refused; with `any_bytes` they become lone surrogates, which no text
    has.
    """
    code_of: dict[str, int] = {}
    parts: list[Ints] = []
    missing = 0
    for batch in column_batches(path, column, any_bytes=any_bytes):
        codes = [code_of.setdefault(MISSING if value is None else value, len(code_of)) for value in batch]
        if len(code_of) > MOST_LABELS:
            allowed = f"a column of at most {MOST_LABELS:,} different values: group or round them first"
            raise InvalidValue("column", column, allowed)
        missing += batch.count(None)
        parts.append(np.array(codes, dtype=np.int64))
    if not code_of:
        raise InvalidValue("path", str(path), "a file with at least one row")
    return _ordered(list(code_of), np.concatenate(parts), missing)


def read_numbers(path: Path, column: str) -> Floats:
    """Read a column of numbers in the order of its rows. A row without a number is refused: a stream has no gaps.

    A blank line between the values of a file with a single column is refused too.
    """
    parts: list[Floats] = []
    rows = 0
    for batch in column_batches(path, column, gaps=True):
        numbers = np.array([math.nan if value is None else number_of(value) for value in batch])
        if np.isnan(numbers).any():
            place = int(np.flatnonzero(np.isnan(numbers))[0])
            raise InvalidValue(f"{column}, {row_name(path, rows + place)}", batch[place], "a number in every row")
        parts.append(numbers)
        rows += len(batch)
    if not rows:
        raise InvalidValue("path", str(path), "a file with at least one row")
    return np.concatenate(parts)


def read_people(path: Path, column: str) -> Ints:
    """A number for the person of each row, which is the same in every file: a hash of what the column names."""
    number_by_name: dict[str, int] = {}
    numbers: list[int] = []
    for batch in column_batches(path, column, gaps=True):
        for name in batch:
            if name is None:
                raise InvalidValue(f"{column}, {row_name(path, len(numbers))}", name, "a person in every row")
            if name not in number_by_name:
                digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
                number_by_name[name] = int.from_bytes(digest[:8], "little", signed=True)
            numbers.append(number_by_name[name])
    return np.array(numbers, dtype=np.int64)


def number_of(label: str) -> float:
    """The number that a label is; NaN if it is no number."""
    try:
        return float(label)
    except ValueError:
        return math.nan


def _ordered(labels: list[str], codes: Ints, missing: int) -> CodedColumn:
    """The column with its labels sorted: numbers by size, then words alphabetically, then "(missing)"."""
    order = sorted(range(len(labels)), key=lambda code: (labels[code] == MISSING, *by_size(labels[code])))
    place = np.empty(len(labels), dtype=np.int64)
    place[order] = np.arange(len(labels))
    return CodedColumn(tuple(labels[code] for code in order), place[codes], missing)


def by_size(label: str) -> tuple[bool, float, str]:
    """The sort key of labels: numbers by size, then words alphabetically."""
    number = number_of(label)
    return (True, 0.0, label) if math.isnan(number) else (False, number, label)
