"""Folds a DataFrame of landed reports into sketches: `mapInArrow` on the rows, then a tree of `applyInArrow` merges.

Where ids are compared, the rows go to tasks by a keyed hash of their ids. They travel in blocks of thousands, each a
binary value: a row by itself costs the JVM more than folding it does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hubbub.backends.folding import Folded, FoldPlan, add_batch, merge, read_plan
from hubbub.backends.report_files import TEXTS, SketchKey
from hubbub.backends.report_rows import read_ids, report_ids
from hubbub.core.errors import InvalidValue, check_integer, needs
from hubbub.core.spec import Json, canonical
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.driver import Conversation
from hubbub.questions.collection import Collection
from hubbub.questions.statistic import StatisticQuestion

if TYPE_CHECKING:
    import pyarrow as pa

DataFrame = Any
"""A `pyspark.sql.DataFrame`, of Spark itself or of Spark Connect."""

BUCKETS = 64
_SLOTS = 512  # of partitions that are folded as they are
_FAN_IN = 8  # sketches that one merge adds up
_ROWS = 1 << 17  # rows that a task looks at together
_BLOCK, _SLOT = "hubbub_block", "hubbub_slot"
_PARTS = "slot int, ask string, result binary, rows long, repeated long"
COLUMNS = (*SketchKey._fields, "id", "report")
"""The columns of a landing file."""


class DataFrameFold(NamedTuple):
    """What `fold` returns: the sketches, how many rows were read, and how many of them repeated an id."""

    folded: Folded
    rows: int
    repeated: int


def plan_of(
    collection: Collection,
    *,
    questions: Sequence[str] = (),
    first: int = 0,
    last: int | None = None,
    candidates: Mapping[str, Sequence[int | str]] | None = None,
    weight: str | None = None,
    mechanisms: Iterable[ReportFormat] = (),
) -> FoldPlan:
    """The plan of a fold of reports to a collection, with the specs that its questions ask for from the beginning on.

    Specs of asks that depend on earlier answers are not known beforehand: give the `mechanisms` that were asked for, or
    fold them by `releases`. All other parameters are those of `FoldPlan`.
    """
    for name in questions:
        if name not in collection.questions:
            raise InvalidValue("questions", name, f"some of {', '.join(collection.questions)}")
    specs: dict[str, Json] = {}
    for name in questions or collection.questions:
        question = collection.questions[name]
        asked = question.mechanisms() if isinstance(question, StatisticQuestion) else ()
        first_asks = Conversation(collection.protocol(name)).asks
        for mechanism in (*asked, *(ask.mechanism for ask in first_asks), *mechanisms):
            specs[mechanism.spec_id] = mechanism.spec()
    return FoldPlan(
        specs=specs, questions=tuple(questions), first=first, last=last, candidates=candidates or {}, weight=weight
    )


def fold(
    df: DataFrame,
    what: Collection | FoldPlan,
    *,
    repetitions: bool = True,
    buckets: int = BUCKETS,
) -> DataFrameFold:
    """Add up the reports of a DataFrame into sketches, one for each ask, byte for byte those of `hubbub fold`.

    Rows that cannot be counted are left out and counted by reason (`hubbub.backends.folding.REASONS`). Of rows with the
    same id that answer the same ask, one counts; which one is not determined.

    Parameters
    ----------
    df
        Rows of landing files (`docs/report-files.md`).
    what
        The collection whose reports are added up, or a plan with specs. DataFrames carry no metadata of files.
    repetitions
        Whether ids may be repeated. False saves a shuffle where the rows were made different before.
    buckets
        How many parts the ids are divided into. A task holds the ids of one part or several, some 50 bytes each.
    """
    if isinstance(what, Collection):
        df, plan = reports_to(df, what), plan_of(what)
    else:
        plan = what
    text = checked_plan(df, plan)
    parts = added_up(df, plan, _sketches(text), _merged, repetitions=repetitions, buckets=buckets)
    folded, rows, repeated = Folded(plan.candidates, plan.weight is not None), 0, 0
    for part in parts:
        folded.merge(Folded.from_bytes(bytes(part["result"])))
        rows, repeated = rows + part["rows"], repeated + part["repeated"]
    return DataFrameFold(folded, rows, repeated)


def added_up(
    df: DataFrame,
    plan: FoldPlan,
    add_up: AddUp,
    merge_parts: Merge,
    *,
    repetitions: bool = True,
    buckets: int = BUCKETS,
) -> list[Any]:
    """What `add_up` makes of the rows of each task, merged in a tree until few parts are left for the caller.

    Returns rows with the `result`, the number of `rows` that went into it, and how many of them `repeated` an id.
    """
    with needs("spark"):
        from pyspark.sql.functions import spark_partition_id

    check_integer("buckets", buckets, 1, 1 << 16)
    names = [*COLUMNS, *([plan.weight] if plan.weight else [])]
    if repetitions:
        slots = buckets
        spread = df.select(*names).mapInArrow(_spread(buckets), f"{_SLOT} int, {_BLOCK} binary")
        parts = spread.repartition(_SLOT).mapInArrow(_of_blocks(add_up), _PARTS)
    else:
        slots = _SLOTS
        numbered = df.select(*names, (spark_partition_id() % slots).alias(_SLOT))
        parts = numbered.mapInArrow(_of_rows(add_up), _PARTS)
    while slots > _FAN_IN:
        slots = -(-slots // _FAN_IN)
        groups = parts.withColumn("slot", (parts["slot"] / _FAN_IN).cast("int")).groupBy("slot", "ask")
        parts = groups.applyInArrow(_merging(merge_parts), _PARTS)
    return list(parts.select("result", "rows", "repeated").collect())


def checked_plan(df: DataFrame, plan: FoldPlan) -> str:
    """The plan as text; refused if it lists no specs, or if the DataFrame is not one of landing rows."""
    if not plan.specs:
        raise InvalidValue("specs", {}, "the specs of the mechanisms: DataFrames carry no metadata of files")
    for name in (*COLUMNS, *([plan.weight] if plan.weight else [])):
        if df.columns.count(name) != 1:
            raise InvalidValue("columns", df.columns, f"one column {name!r}")
        kind = df.schema[name].dataType.typeName()
        allowed = (
            ("string", "varchar", "char", "binary")
            if name in (*TEXTS, "id", "report")
            else ("byte", "short", "integer", "long")
        )
        if kind not in allowed:
            raise InvalidValue(name, kind, f"a column of one of the types {', '.join(allowed)}")
    text = plan.to_json()
    read_plan(text)
    return text


def reports_to(df: DataFrame, collection: Collection) -> DataFrame:
    """The rows of a DataFrame that are of a collection; those that name none at all stay, to be counted as bad."""
    from pyspark.sql.functions import coalesce, col, lit

    wanted = (col("collection") == lit(collection.name)) & (col("version") == lit(collection.version))
    return df.where(coalesce(wanted, lit(True)))


def first_of_each(rows: DataFrame) -> DataFrame:
    """The rows without those that repeat an id, as a DataFrame or as a stream."""
    from pyspark.sql.functions import length, lit, when

    ask = [name for name in SketchKey._fields if name != "spec_id"]
    improper = when(length(rows["id"].cast("binary")) == 16, lit(None)).otherwise(rows["report"].cast("binary"))
    return rows.withColumn("hubbub_improper", improper).dropDuplicates([*ask, "id", "hubbub_improper"])


# -- what tasks run -----------------------------------------------------------------------------------------------

Batches = Iterable["pa.RecordBatch"]
Task = Callable[[Batches], Iterator["pa.RecordBatch"]]
AddUp = Callable[[Batches], Iterator[tuple[str, bytes]]]
"""Adds up rows, each of them once. Yields results by the name of what they are of; those of one name can be merged."""
Merge = Callable[[Sequence[bytes]], bytes]


def larger(batches: Batches, rows: int = _ROWS) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches: engines hand out thousands at a time, and each fold has a price of its own."""
    import pyarrow as pa

    def joined() -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(waiting).unify_dictionaries().combine_chunks()
        yield from table.to_batches()

    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= rows:
            yield from joined()
            waiting = []
    if waiting:
        yield from joined()


def _spread(buckets: int) -> Task:
    """A task that divides rows by their ids into blocks, one for each bucket."""
    key = np.frombuffer(os.urandom(16), dtype=np.uint64) | np.uint64(1)  # whoever chooses ids does not know it

    def spread(batches: Batches) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for rows in larger(batches):
            if not rows.num_rows:
                continue
            ids, _ = read_ids(rows)
            hashed = (ids * key).sum(axis=1, dtype=np.uint64)
            place = ((hashed >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)).astype(np.uint16)
            order = np.argsort(place, kind="stable")
            ends = np.searchsorted(place[order], np.arange(buckets + 1))
            sorted_rows = _coded(rows).take(pa.array(order, pa.int64()))
            used = np.flatnonzero(ends[:-1] < ends[1:])
            blocks = [_block(sorted_rows.slice(ends[at], ends[at + 1] - ends[at])) for at in used]
            yield pa.record_batch([pa.array(used, pa.int32()), pa.array(blocks, pa.binary())], names=[_SLOT, _BLOCK])

    return spread


def _coded(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows whose texts, of which few differ, are codes of a dictionary."""
    arrays = [
        column.dictionary_encode() if name in TEXTS else column
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    ]
    import pyarrow as pa

    return pa.record_batch(arrays, names=rows.schema.names)


def _block(rows: pa.RecordBatch) -> bytes:
    import pyarrow as pa

    into = pa.BufferOutputStream()
    with pa.ipc.new_stream(into, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(rows)
    return into.getvalue().to_pybytes()


def _of_blocks(add_up: AddUp) -> Task:
    """A task that adds up the rows of blocks, each id once."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from hubbub.kernels.id_set import IdSet

        known, slots, rows, repeated = IdSet(), set[int](), 0, 0

        def fresh() -> Iterator[pa.RecordBatch]:
            nonlocal rows, repeated
            for batch in batches:
                slots.update(batch.column(_SLOT).to_numpy().tolist())
                for block in batch.column(_BLOCK):
                    for part in pa.ipc.open_stream(block.as_buffer()):
                        places, ids = report_ids(part)
                        again = known.add(ids)
                        rows, repeated = rows + part.num_rows, repeated + int(again.sum())
                        if again.any():
                            keep = np.ones(part.num_rows, dtype=np.bool_)
                            keep[places[again]] = False
                            part = part.filter(pa.array(keep))
                        yield part

        results = list(add_up(larger(fresh())))
        yield from _emitted(results, min(slots, default=0), rows, repeated)

    return task


def _of_rows(add_up: AddUp) -> Task:
    """A task that adds up rows as they are."""

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        slot = rows = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal slot, rows
            for batch in larger(batches):
                slot = batch.column(_SLOT)[0].as_py() if batch.num_rows else slot
                rows += batch.num_rows
                yield batch

        results = list(add_up(counted()))
        yield from _emitted(results, slot, rows, 0)

    return task


def _emitted(results: Sequence[tuple[str, bytes]], slot: int, rows: int, repeated: int) -> Iterator[pa.RecordBatch]:
    """A row for each result, of which the first has the numbers of rows."""
    for ask, data in results if rows else ():  # each alone: a sketch may have millions of counts
        yield _part(slot, ask, data, rows, repeated)
        rows = repeated = 0


def _part(slot: int, ask: str, result: bytes, rows: int, repeated: int) -> pa.RecordBatch:
    import pyarrow as pa

    kinds = {"slot": pa.int32(), "ask": pa.string(), "result": pa.binary(), "rows": pa.int64(), "repeated": pa.int64()}
    values = zip((slot, ask, result, rows, repeated), kinds.values(), strict=True)
    return pa.record_batch([pa.array([value], kind) for value, kind in values], names=list(kinds))


def _merging(merge: Merge) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """A merge of the results of one name and slot."""

    def merging(key: tuple[Any, ...], parts: pa.Table) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        rows, repeated = (int(pc.sum(parts[name]).as_py()) for name in ("rows", "repeated"))
        result = merge([part.as_py() for part in parts["result"]])
        return pa.Table.from_batches([_part(key[0].as_py(), key[1].as_py(), result, rows, repeated)])

    return merging


def _sketches(text: str) -> AddUp:
    """Rows into sketches by ask; the rows that are left out come first, under no name."""

    def add_up(batches: Batches) -> Iterator[tuple[str, bytes]]:
        plan = read_plan(text)
        folded = Folded(plan.candidates, plan.weight is not None)
        for batch in batches:
            add_batch(folded, batch, plan)
        none = Folded(folded.candidates, folded.weighted)
        none.left_out = folded.left_out
        yield "", none.to_bytes()
        for key, sketch in sorted(folded.sketches.items()):
            single = Folded(folded.candidates, folded.weighted)
            single.add(key, folded.mechanisms[key.spec_id], sketch)
            yield canonical(list(key)), single.to_bytes()

    return add_up


def _merged(parts: Sequence[bytes]) -> bytes:
    return reduce(merge, parts)
