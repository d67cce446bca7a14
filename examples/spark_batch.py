"""Fold a lake of landing files with Spark, read the shares, and run a whole study over the rows that were kept.

    python examples/spark_batch.py                       # Spark on this machine (Java 17)
    python examples/spark_batch.py sc://localhost:50051  # any server of Spark Connect, such as `sail spark server`

Simulated devices answer a histogram and a search for the most common numbers. In place of a collector, their reports
land in Parquet files, some of them twice, as an ingest of your own would write them (docs/report-files.md).
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hubbub as hb
import hubbub.spark
from hubbub.authoring import load_collection
from hubbub.backends.folding import Folded
from hubbub.backends.report_files import SketchKey, landing_batch, row_bytes
from hubbub.core.estimate import Estimate
from hubbub.mechanisms.base import Mechanism
from hubbub.questions.collection import Collection

TEXT = """
name = "editor"
version = 1
title = "How an editor is used"

[schedule]
step = "1d"
lateness = "1h"

[privacy]
user = 20.0

[fields.theme]
kind = "categorical"
names = ["light", "dark", "high contrast"]

[fields.size]
kind = "ordinal"
size = 65536

[questions.themes]
kind = "histogram"
field = "theme"
epsilon = 1.0

[questions.sizes]
kind = "top"
field = "size"
epsilon = 4.0
k = 3
start = "2026-12-01T00:00Z"
"""


NOTHING = Folded({}, False)


def answers(collection: Collection, people: int, rng: hb.Random) -> Iterator[tuple[SketchKey, bytes, bytes]]:
    """What devices send: to the histogram of day 30, and to the study, where each group reports its own prefix."""
    themes = np.resize([0, 0, 0, 1, 1, 2], people)
    sizes = rng.permutation(people) % 16
    sizes = np.where(sizes < 8, 1080, np.where(sizes < 12, 1440, 40_000 + sizes))
    for question, values, number in (("themes", themes, 30), ("sizes", sizes, 0)):
        asks = hubbub.spark.next_asks(NOTHING, collection, question, number=number)
        for (name, ask), part in zip(asks, np.array_split(values, len(asks)), strict=True):
            assert isinstance(ask.mechanism, Mechanism)
            reports = ask.mechanism.randomize(ask.view(part), rng)
            key = SketchKey(collection.name, collection.version, *name, ask.mechanism.spec_id)
            for report in row_bytes(ask.mechanism, reports):
                yield key, rng.bytes(16), report


def session(remote: str | None) -> Any:
    """A server of Spark Connect, or Spark on this machine, whose tasks run in this Python."""
    from pyspark.sql import SparkSession

    if remote is not None:
        return SparkSession.builder.remote(remote).getOrCreate()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )


def main(spark: Any, people: int = 20_000) -> tuple[Estimate, Estimate]:
    """The shares of the themes, and of the most common sizes."""
    collection = load_collection(TEXT)
    rows = list(answers(collection, people, hb.Random(seed=1)))
    with tempfile.TemporaryDirectory() as lake:
        sent_again = rows[: people // 10]
        for number in range(4):
            part = landing_batch([*rows[number::4], *sent_again[number::4]], [])
            pq.write_table(pa.Table.from_batches([part]), f"{lake}/{number}.parquet")
        df = spark.read.parquet(lake)

        result = hubbub.spark.fold(df, hubbub.spark.plan_of(collection, questions=["themes"]))
        print(f"{result.rows:,} rows, of which {result.repeated:,} repeat an id; left out: {result.folded.left_out}")
        (key,) = result.folded.sketches
        themes = result.folded.estimate(key)
        print(f"themes of day {key.step}: {themes}")

        (release,) = hubbub.spark.releases(df, collection, "sizes")
        for name, share in zip(release.estimate.names(), release.estimate.value, strict=True):
            print(f"size {name}: {share:.1%}")
        return themes, release.estimate


if __name__ == "__main__":
    main(session(sys.argv[1] if len(sys.argv) > 1 else None))
