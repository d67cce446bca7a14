"""Reads batches of reports (`report_files.py`): the readable rows by their sketch, and the rows that are left out.

Batches were written by others: a row that cannot be read is left out, under a named reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hubbub.backends.report_files import (
    ID_BYTES,
    TEXTS,
    SketchKey,
    Specs,
    arrow_type,
    column_name,
    column_of,
    head_of,
    is_key_field,
)
from hubbub.core.errors import DecodeError
from hubbub.core.reports import Array, Bools, Ints, Reports, Words
from hubbub.core.spec import canonical
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.report_columns import reports_of

if TYPE_CHECKING:
    import pyarrow as pa


MOST_WEIGHT = (1 << 23) - 1
"""The largest weight of a report: the squares of 65,536 of them sum to less than 2^63."""


class RowGroup(NamedTuple):
    """The rows of a batch that go into one sketch."""

    key: SketchKey
    mechanism: ReportFormat
    reports: Reports
    rows: Ints
    weights: Ints | None

    def take(self, rows: Bools | slice) -> RowGroup:
        """Some rows of the group."""
        weights = None if self.weights is None else self.weights[rows]
        return self._replace(reports=self.reports[rows], rows=self.rows[rows], weights=weights)


class ReadBatch(NamedTuple):
    """A batch as it was read: groups of readable rows, and for each reason the rows that were left out."""

    groups: list[RowGroup]
    left_out: dict[str, Ints]


def archived_reports(batch: pa.RecordBatch, mechanism: ReportFormat) -> Reports:
    """The reports of a batch of an archive; refused where columns are missing or of another type."""
    arrays = {}
    for column in mechanism.columns:
        name, little = column_name(column), np.dtype(column.dtype).newbyteorder("<")
        values = _only(batch, name)
        if str(values.type) != arrow_type(column):
            raise DecodeError(name, str(values.type), arrow_type(column))
        if values.null_count:
            raise DecodeError(name, f"{values.null_count} nulls", "none")
        if column.shape:
            width = column.entry_bytes
            raw = np.frombuffer(values.buffers()[1], np.uint8, len(values) * width, values.offset * width)
            entries = raw.view(little).reshape(-1, *column.shape)
        else:
            entries = values.to_numpy(zero_copy_only=False)
        arrays[column.name] = entries
    return reports_of(mechanism.spec_id, mechanism.columns, arrays)


class RowKeys(NamedTuple):
    """The keys that the rows of a batch name, and for each row the place of its key; -1 where it names none."""

    keys: list[SketchKey]
    place: Ints


def read_batch(
    batch: pa.RecordBatch, specs: Specs, wanted: Callable[[SketchKey], bool], *, weight: str | None = None
) -> ReadBatch:
    """The readable reports of a batch by their sketch, and the rows that are left out, by reason.

    Parameters
    ----------
    batch
        Rows of a landing file, or of an archive with its metadata.
    specs
        Mechanisms to read by; if empty, those that the metadata lists.
    wanted
        Which reports are counted; rows of others are passed over.
    weight
        The column of the reports' weights, which are integers of at most `MOST_WEIGHT` either way.
    """
    head = head_of(batch.schema)
    specs = specs or (head.specs if head else {})
    if not batch.num_rows:
        return ReadBatch([], {})
    weights, bad_weight = _weights(batch, weight)
    if head is not None and head.key is not None:
        return _read_archive(batch, head.key, specs, wanted, weights, bad_weight)
    keys = read_keys(batch)
    reasons = [("bad_name", keys.place < 0), ("bad_weight", bad_weight)]
    if "id" in batch.schema.names:
        reasons.append(("bad_id", ~read_ids(batch)[1]))
    known = np.array([key.spec_id in specs for key in keys.keys] + [True])  # the last is for rows without a key
    reasons.append(("unknown_spec", ~known[keys.place]))
    values = _cast(batch, "report", "binary")
    offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
    size = np.array([specs[key.spec_id].report_bytes if key.spec_id in specs else -1 for key in keys.keys] + [-1])
    reasons.append(("malformed", (np.diff(offsets) != size[keys.place]) | _nulls(values)))
    chosen = np.array([wanted(key) for key in keys.keys] + [True])[keys.place]
    left_out, readable = _divide(reasons, chosen)
    groups = []
    for place, key, rows in _rows_of(keys, readable):
        mechanism, width = specs[key.spec_id], int(size[place])
        raw = _packed(values, offsets, rows, width)
        reports = _from_rows(mechanism, raw)
        groups.append(RowGroup(key, mechanism, reports, rows, None if weights is None else weights[rows]))
    return _within_bounds(groups, left_out)


def _read_archive(
    batch: pa.RecordBatch,
    key: SketchKey,
    specs: Specs,
    wanted: Callable[[SketchKey], bool],
    weights: Ints | None,
    bad_weight: Bools,
) -> ReadBatch:
    if not wanted(key):
        return ReadBatch([], {})
    if key.spec_id not in specs:
        return ReadBatch([], {"unknown_spec": np.arange(batch.num_rows)})
    mechanism, left_out = specs[key.spec_id], {}
    group = RowGroup(key, mechanism, archived_reports(batch, mechanism), np.arange(batch.num_rows), weights)
    if bad_weight.any():
        left_out, group = {"bad_weight": np.flatnonzero(bad_weight)}, group.take(~bad_weight)
    return _within_bounds([group], left_out)


def read_keys(batch: pa.RecordBatch) -> RowKeys:
    """The keys of the rows of a landing batch."""
    place = np.zeros(batch.num_rows, dtype=np.int64)
    listed: list[list[object]] = [[]]
    bad = np.zeros(batch.num_rows, dtype=np.bool_)
    for name in SketchKey._fields:
        encoded = _cast(batch, name, "binary" if name in TEXTS else "int64").dictionary_encode()
        values = [_decoded(value) for value in encoded.dictionary.to_pylist()]
        index = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False).astype(np.int64)
        bad |= ~np.array([is_key_field(name, value) for value in values] + [False])[index]
        if len(values) == 1 and not encoded.indices.null_count:
            listed = [[*row, values[0]] for row in listed]
            continue
        # Only combinations that occur are kept, so that there are never more of them than rows.
        used, place = np.unique(place * (len(values) + 1) + index, return_inverse=True)
        listed = [[*listed[at // (len(values) + 1)], [*values, None][at % (len(values) + 1)]] for at in used.tolist()]
    place[bad] = -1
    good = np.unique(place[~bad])
    renumbered = np.full(len(listed) + 1, -1)
    renumbered[good] = np.arange(len(good))
    return RowKeys([SketchKey.read(listed[at]) for at in good.tolist()], renumbered[place])


def _decoded(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def read_ids(batch: pa.RecordBatch) -> tuple[Words, Bools]:
    """The ids of the rows of a landing batch as two words each, and which of them are ids."""
    values = _cast(batch, "id", "binary")
    offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
    valid = (np.diff(offsets) == ID_BYTES) & ~_nulls(values)
    ids = np.zeros((len(values), 2), dtype="<u8")
    rows = np.flatnonzero(valid)
    ids[rows] = _packed(values, offsets, rows, ID_BYTES).view("<u8").reshape(-1, 2)
    return ids, valid


def report_ids(batch: pa.RecordBatch) -> tuple[Ints, Words]:
    """The rows of a landing batch that name an ask and an id, and for each two words that tell its ask and id."""
    keys, (ids, valid) = read_keys(batch), read_ids(batch)
    rows = np.flatnonzero(valid & (keys.place >= 0))
    asks = np.array([ask_digest(key) for key in keys.keys], dtype=np.uint64).reshape(-1, 2)
    # An id that is chosen to meet another ask's does what the same id in that ask would do.
    return rows, ids[rows] ^ asks[keys.place[rows]]


def ask_digest(key: SketchKey) -> Words:
    """A hash of the ask of a key as two words. Ids are told apart within an ask, whatever spec their rows name."""
    digest = hashlib.sha256(canonical(list(key[:-1])).encode()).digest()
    return np.frombuffer(digest[:ID_BYTES], "<u8")


def _only(batch: pa.RecordBatch, name: str) -> Any:
    places = batch.schema.get_all_field_indices(name)
    if len(places) != 1:
        raise DecodeError("columns", batch.schema.names, f"one column {name!r}")
    return batch.column(places[0])


def _cast(batch: pa.RecordBatch, name: str, kind: str) -> Any:
    """A column as 64-bit integers or as bytes, whichever of Arrow's types for them it has."""
    import pyarrow as pa

    values = _only(batch, name)
    try:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        whole = pa.types.is_integer(values.type)
        if whole if kind == "binary" else not whole:
            raise pa.ArrowTypeError(kind)
        return values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        allowed = "integers below 2^63" if kind == "int64" else "texts or bytes"
        raise DecodeError(name, str(values.type), allowed) from None


def _nulls(values: Any) -> Bools:
    if not values.null_count:
        return np.zeros(len(values), dtype=np.bool_)
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False))


def _weights(batch: pa.RecordBatch, weight: str | None) -> tuple[Ints | None, Bools]:
    if weight is None:
        return None, np.zeros(batch.num_rows, dtype=np.bool_)
    values = _cast(batch, weight, "int64")
    numbers = values.fill_null(MOST_WEIGHT + 1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers, (numbers > MOST_WEIGHT) | (numbers < -MOST_WEIGHT)


def _divide(reasons: Sequence[tuple[str, Bools]], chosen: Bools) -> tuple[dict[str, Ints], Bools]:
    """The first reason that applies to each chosen row, and the rows that none applies to."""
    left_out, rest = {}, chosen
    for reason, applies in reasons:
        rows = np.flatnonzero(rest & applies)
        if len(rows):
            left_out[reason] = rows
            rest = rest & ~applies
    return left_out, rest


def _rows_of(keys: RowKeys, readable: Bools) -> Iterator[tuple[int, SketchKey, Ints]]:
    rows = np.flatnonzero(readable)
    if len(keys.keys) > 1:
        rows = rows[np.argsort(keys.place[rows], kind="stable")]
    ends = np.searchsorted(keys.place[rows], np.arange(len(keys.keys) + 1))
    for place, key in enumerate(keys.keys):
        if ends[place] < ends[place + 1]:
            yield place, key, rows[ends[place] : ends[place + 1]]


def _packed(values: Any, offsets: Array, rows: Ints, width: int) -> Array:
    """The bytes of some rows that all have this width, one row after the other."""
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    if len(rows) == len(values):
        return np.asarray(data[int(offsets[0]) : int(offsets[-1])])
    return np.asarray(data[offsets[rows].astype(np.int64)[:, None] + np.arange(width)].reshape(-1))


def _from_rows(mechanism: ReportFormat, raw: Array) -> Reports:
    """Reports from the bytes of single reports, one after the other."""
    rows, arrays, start = raw.reshape(-1, mechanism.report_bytes), {}, 0
    for column in mechanism.columns:
        little = np.dtype(column.dtype).newbyteorder("<")
        entries = np.ascontiguousarray(rows[:, start : start + column.entry_bytes]).view(little)
        arrays[column.name] = entries.reshape(len(rows), *column.shape)
        start += column.entry_bytes
    return reports_of(mechanism.spec_id, mechanism.columns, arrays)


def _within_bounds(groups: list[RowGroup], left_out: dict[str, Ints]) -> ReadBatch:
    """Leave out the rows with values that their columns cannot hold."""
    kept, malformed = [], [left_out.get("malformed", np.zeros(0, dtype=np.int64))]
    for group in groups:
        beyond = np.zeros(len(group.reports), dtype=np.bool_)
        for column in group.mechanism.columns:
            beyond |= column.beyond(column_of(group.reports, column))
        if beyond.any():
            malformed.append(group.rows[beyond])
            group = group.take(~beyond)
        if len(group.reports):
            kept.append(group)
    rows = np.concatenate(malformed)
    return ReadBatch(kept, {**left_out, **({"malformed": rows} if len(rows) else {})})
