"""A window stream of private shares from files that land, by Spark's Structured Streaming.

    python examples/spark_stream.py    # Spark on this machine (Java 17)

Simulated devices answer a stream with a limit for any 3 days. Each day their reports land in files. A query adds them
up, each exactly once, into the sketches of a SQLite file; after each day, its step is closed and released.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hubbub as hb
from hubbub.authoring import load_collection
from hubbub.backends.folding import Folded
from hubbub.backends.report_files import SketchKey, landing_batch, row_bytes
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.driver import Release
from hubbub.questions.collection import Collection
from hubbub.spark import SketchSink, fold_stream, next_asks, releases

TEXT = """
name = "editor"
version = 1
title = "How an editor is used"

[schedule]
step = "1d"
lateness = "1h"

[privacy]
window = { epsilon = 1.0, steps = 3 }

[fields.theme]
kind = "categorical"
names = ["light", "dark"]

[questions.themes]
kind = "stream"
field = "theme"
epsilon = 1.0
method = "LBU"
w = 3
"""
FIRST = 30
COLUMNS = (
    "collection string, version long, question string, run long, step long, round long, part long, spec_id string, "
    "id binary, report binary"
)


def land(collection: Collection, so_far: Folded, day: int, people: int, landing: Path) -> None:
    """Ask the devices what this day asks, and land their reports in two files; some are sent twice."""
    rng = hb.Random(seed=day)
    dark = (np.arange(people) < (0.3 + 0.1 * day) * people).astype(np.int64)
    rows = []
    for name, ask in next_asks(so_far, collection, "themes", number=FIRST, rounds=day):
        assert isinstance(ask.mechanism, Mechanism)
        key = SketchKey(collection.name, collection.version, *name, ask.mechanism.spec_id)
        reports = row_bytes(ask.mechanism, ask.mechanism.randomize(ask.view(dark), rng))
        rows += [(key, rng.bytes(16), report) for report in reports]
    for part in range(2):
        batch = landing_batch([*rows[part::2], *rows[: people // 20]], [])
        path = landing / f"{day}-{part}.parquet"
        pq.write_table(pa.Table.from_batches([batch]), path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)  # a file must appear whole


def main(spark: Any, people: int = 20_000, days: int = 3) -> list[Release]:
    """Lands, adds up and releases some days; the last release is of the last day."""
    collection, released = load_collection(TEXT), []
    with tempfile.TemporaryDirectory() as folder:
        landing = Path(folder) / "landing"
        landing.mkdir()
        sink = SketchSink(f"{folder}/sketches.db")
        for day in range(days):
            land(collection, sink.folded(), day, people, landing)
            # A deployment has one query that runs all the time; this one stops when all that landed is added up.
            rows = spark.readStream.schema(COLUMNS).option("pathGlobFilter", "*.parquet").parquet(str(landing))
            once = {"availableNow": True}
            fold_stream(rows, collection, sink, checkpoint=f"{folder}/checkpoint", trigger=once).awaitTermination()
            sink.close(collection, "themes", FIRST + day)
            released = releases(sink.folded(), collection, "themes", number=FIRST, steps=day + 1)
            print(f"day {released[-1].step}: {released[-1].own}; {sink.counts('landing')}")
    return released


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false")
    main(builder.config("spark.sql.shuffle.partitions", "4").getOrCreate())
