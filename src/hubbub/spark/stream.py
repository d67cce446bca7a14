"""Streams of reports into sketches of steps, by Spark's Structured Streaming."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hubbub.backends.folding import FoldPlan
from hubbub.core.errors import DecodeError
from hubbub.questions.collection import Collection
from hubbub.spark.batch import COLUMNS, DataFrame, checked_plan, first_of_each, fold, plan_of, reports_to
from hubbub.spark.sink import SketchSink


def fold_stream(
    df: DataFrame,
    collection: Collection,
    sink: SketchSink,
    *,
    checkpoint: str,
    source: str = "landing",
    plan: FoldPlan | None = None,
    repetitions: bool = True,
    trigger: Mapping[str, object] | None = None,
) -> Any:
    """Add up a stream of landed reports, each exactly once, into the sketches of a sink. Returns the running query.

    Of rows with the same id that answer the same ask, the one that lands first counts; of those of one batch, any. Rows
    without a proper id are compared by their report too.

    Parameters
    ----------
    df
        A streaming DataFrame of landing rows: files, or a topic of them.
    collection
        The collection whose reports are added up.
    sink
        Where the sketches are.
    checkpoint
        A folder of the query's own. Lost, it reads everything again, which the sink refuses.
    source
        The name of what is read; each is read by one query.
    plan
        Which questions and steps, as `plan_of` makes it; all unless given.
    repetitions
        Whether ids may be repeated. They are compared in Spark's state store, which keeps all of them; False where the
        rows were made different before, as by `dropDuplicatesWithinWatermark`.
    trigger
        When a batch begins, as for `DataStreamWriter.trigger`: `{"availableNow": True}`.
    """
    plan = plan_of(collection) if plan is None else plan
    names = [*COLUMNS, *([plan.weight] if plan.weight else [])]
    checked_plan(df, plan)
    rows = reports_to(df, collection).select(*names)
    if repetitions:
        rows = first_of_each(rows).select(*names)
    query: list[str] = []

    def add_up(batch: DataFrame, number: int) -> None:
        if not query:
            query.append(_query_id(batch.sparkSession, checkpoint))
        added = sink.has(source, query[0], number)
        # A batch that comes again is read to its end all the same: only then does Spark keep the ids that were in it.
        if repetitions or not added:
            sink.commit(source, query[0], number, fold(batch, plan, repetitions=False))

    writer = rows.writeStream.option("checkpointLocation", checkpoint).foreachBatch(add_up)
    return (writer.trigger(**trigger) if trigger else writer).start()


def _query_id(spark: Any, checkpoint: str) -> str:
    """The id of a query, which Spark keeps in its checkpoint through all restarts."""
    text = "".join(row[0] for row in spark.read.text(f"{checkpoint.rstrip('/')}/metadata").collect())
    try:
        return str(json.loads(text)["id"])
    except (ValueError, KeyError, TypeError):
        raise DecodeError("checkpoint", text[:100], "the metadata of a streaming query") from None
