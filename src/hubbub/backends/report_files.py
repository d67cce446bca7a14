"""Reports at rest, in Arrow record batches: the columns of landing files and of archives.

A *landing* row is what a device sent: which ask it answers, its id, and its report in bytes. An *archive* has the
reports to one ask in the mechanism's own columns, without ids, in an order that tells nothing. `docs/report-files.md`
describes both; `report_rows.py` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch, at, needs
from hubbub.core.migrations import Versions
from hubbub.core.reports import Array, Ints, Reports
from hubbub.core.spec import SAFE, Json, canonical
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.report_columns import ColumnSpec

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Versions[None] = Versions("report file", 1)
METADATA = b"hubbub"
"""The key of a schema's metadata that describes a file, as JSON."""
ID_BYTES = 16
_MOST_COUNTS = 1 << 24
_LONGEST = 64

Kind = Literal["landing", "archive"]
Specs = Mapping[str, ReportFormat]
"""Mechanisms by the ids of their specs."""


class SketchKey(NamedTuple):
    """What one sketch is of: the ask that reports answer, as their rows name it, and the id of their mechanism's spec.

    Rounds are counted from 1. `run` is 0 unless a study is repeated, and `part` is 0 where a round has one ask.
    """

    collection: str
    version: int
    question: str
    run: int
    step: int
    round: int
    part: int
    spec_id: str

    @staticmethod
    def read(values: Sequence[object]) -> SketchKey:
        """A key from its fields, checked."""
        if len(values) != len(SketchKey._fields):
            raise DecodeError("key", values, f"the fields {', '.join(SketchKey._fields)}")
        for name, value in zip(SketchKey._fields, values, strict=True):
            if not is_key_field(name, value):
                allowed = f"1 to {_LONGEST} characters" if name in TEXTS else "an integer from 0 to 2^53-1"
                raise DecodeError(name, value, allowed)
        return SketchKey(*values)  # type: ignore[arg-type]


TEXTS = ("collection", "question", "spec_id")


def is_key_field(name: str, value: object) -> bool:
    """Whether a field of a key can have this value."""
    if name in TEXTS:
        return isinstance(value, str) and 0 < len(value) <= _LONGEST
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < SAFE


class Head(NamedTuple):
    """What the metadata of a schema says: the kind of file, its mechanisms, and the ask that an archive is of."""

    kind: Kind
    specs: Specs
    key: SketchKey | None = None


def mechanisms_of(specs: object) -> Specs:
    """Mechanisms from specs by id. Refuses a spec whose id is another, and one of a sketch past 128 MiB."""
    if not isinstance(specs, Mapping):
        raise DecodeError("specs", specs, "specs of mechanisms by their ids")
    mechanisms = {}
    for identity, spec in specs.items():
        with at(f"specs.{identity}"):
            mechanism = ReportFormat.from_spec(spec)
            if mechanism.spec_id != identity:
                raise SpecMismatch("spec_id", identity, f"{mechanism.spec_id}, the id of this spec")
            if int(np.prod(mechanism.sketch_shape, dtype=object)) > _MOST_COUNTS:
                raise InvalidValue("sketch", mechanism.sketch_shape, f"at most {_MOST_COUNTS:,} counts")
        mechanisms[identity] = mechanism
    return mechanisms


def head_of(schema: pa.Schema) -> Head | None:
    """What the metadata of a schema says; None where there is none of ours."""
    metadata = (schema.metadata or {}).get(METADATA)
    return None if metadata is None else _head(metadata)


@lru_cache(maxsize=256)
def _head(metadata: bytes) -> Head:
    try:
        head = json.loads(metadata)
    except (ValueError, RecursionError):
        raise DecodeError("metadata", metadata[:40], "JSON") from None
    if not isinstance(head, dict) or not {"format", "kind", "specs"} <= set(head) <= {"format", "kind", "specs", "key"}:
        raise DecodeError("metadata", metadata[:40], "an object with format, kind, specs and, of an archive, key")
    FORMAT.check(head["format"])
    if head["kind"] not in ("landing", "archive") or (head["kind"] == "archive") != ("key" in head):
        raise DecodeError("kind", head["kind"], "landing, or archive with a key")
    specs = mechanisms_of(head["specs"])
    if head["kind"] == "landing":
        return Head("landing", specs)
    key = SketchKey.read(head["key"] if isinstance(head["key"], list) else [])
    if list(specs) != [key.spec_id]:
        raise SpecMismatch("specs", list(specs), f"the spec of the archive's reports, {key.spec_id}, alone")
    return Head("archive", specs, key)


def _metadata(kind: Kind, mechanisms: Sequence[ReportFormat], key: SketchKey | None = None) -> dict[bytes, bytes]:
    head: dict[str, Json] = {
        "format": FORMAT.version,
        "kind": kind,
        "specs": {each.spec_id: each.spec() for each in mechanisms},
    }
    return {METADATA: canonical({**head, "key": list(key)} if key else head).encode()}


# -- landing files ------------------------------------------------------------------------------------------------


def landing_schema(mechanisms: Sequence[ReportFormat] = ()) -> pa.Schema:
    """The schema of landing files; its metadata has the specs of these mechanisms."""
    with needs("server"):
        import pyarrow as pa
    kinds: dict[str, pa.DataType] = {name: pa.string() if name in TEXTS else pa.int64() for name in SketchKey._fields}
    kinds |= {"id": pa.binary(ID_BYTES), "report": pa.binary()}
    fields = [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]
    return pa.schema(fields).with_metadata(_metadata("landing", mechanisms))


def landing_batch(rows: Sequence[tuple[SketchKey, bytes, bytes]], mechanisms: Sequence[ReportFormat]) -> pa.RecordBatch:
    """A batch of a landing file, from the key, id and report of each row."""
    schema = landing_schema(mechanisms)
    import pyarrow as pa

    columns = zip(*((*key, identity, report) for key, identity, report in rows), strict=True) if rows else None
    arrays = [[] for _ in schema] if columns is None else [list(column) for column in columns]
    return pa.record_batch(
        [pa.array(values, field.type) for values, field in zip(arrays, schema, strict=True)], schema=schema
    )


def row_bytes(mechanism: ReportFormat, reports: Reports) -> list[bytes]:
    """Each report as its device sent it: the bytes of `to_bare` of a batch of one."""
    columns = [np.ascontiguousarray(column_of(reports, column)) for column in mechanism.columns]
    little = [column.astype(column.dtype.newbyteorder("<"), copy=False) for column in columns]
    rows = np.concatenate([column.reshape(len(reports), -1).view(np.uint8) for column in little], axis=1)
    return [row.tobytes() for row in rows]


# -- archives -----------------------------------------------------------------------------------------------------


def archive_table(key: SketchKey, mechanism: ReportFormat, reports: Reports) -> pa.Table:
    """The reports to one ask as a table, sorted: their order tells nothing of when they came."""
    with needs("server"):
        import pyarrow as pa
    if {key.spec_id, reports.spec_id} != {mechanism.spec_id}:
        raise SpecMismatch("spec_id", reports.spec_id, f"reports of {mechanism.spec_id}")
    columns = {column_name(column): column_of(reports, column) for column in mechanism.columns}
    order = _order(list(columns.values()))
    arrays = {name: _arrow(column[order]) for name, column in columns.items()}
    return pa.table(arrays).replace_schema_metadata(_metadata("archive", [mechanism], key))


def column_name(column: ColumnSpec) -> str:
    """The name of a mechanism's column in an archive."""
    return f"{column.part}.{column.name}"


def arrow_type(column: ColumnSpec) -> str:
    """The name of Arrow's type of a mechanism's column."""
    if column.shape:
        return f"fixed_size_binary[{column.entry_bytes}]"
    return np.dtype(column.dtype).name


def column_of(reports: Reports, column: ColumnSpec) -> Array:
    """The entries of a mechanism's column."""
    return (reports.public if column.part == "public" else reports.private)[column.name]


def _order(columns: list[Array]) -> Ints:
    rows = [np.ascontiguousarray(column).reshape(len(column), -1).view(np.uint8) for column in columns]
    joined = np.ascontiguousarray(np.concatenate(rows, axis=1))
    return np.argsort(joined.view(f"V{joined.shape[1]}")[:, 0], kind="stable")


def _arrow(column: Array) -> Any:
    import pyarrow as pa

    if column.ndim == 1:
        return pa.array(column)
    width = column.dtype.itemsize * int(np.prod(column.shape[1:]))
    raw = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<")).tobytes()
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(column), [None, pa.py_buffer(raw)])
