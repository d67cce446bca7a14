"""A stream of landing files is added up exactly once, whatever is killed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples import spark_stream
from hubbub.backends.file_fold import fold_files
from hubbub.backends.folding import Folded, FoldPlan
from hubbub.backends.report_files import landing_batch
from hubbub.core.errors import InvalidValue
from hubbub.spark import SketchSink, fold_stream, releases
from tests.served import wait_for
from tests.shared.landed_crowd import Crowd, survey, told
from tests.spark.engine.stream_world import SCHEMA


def land(crowd: Crowd, folder: Path, names: list[str], rows: list[Any]) -> None:
    """Write rows into as many files, each of which appears whole."""
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        part = landing_batch(rows[number :: len(names)], list(crowd.mechanisms.values()))
        pq.write_table(pa.Table.from_batches([part]), folder / f".{name}")
        os.replace(folder / f".{name}", folder / f"{name}.parquet")


def of_files(folder: Path) -> Folded:
    return fold_files([str(folder / "landing")], FoldPlan(), folder / "folded").folded


def run(spark: Any, folder: Path, checkpoint: str = "checkpoint") -> SketchSink:
    """Read what has landed, and stop."""
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(folder / "landing"))
    sink = SketchSink(folder / "sketches.db")
    trigger = {"availableNow": True}
    query = fold_stream(rows, survey(), sink, checkpoint=str(folder / checkpoint), trigger=trigger)
    query.awaitTermination()
    return sink


def test_files_that_land_are_added_up_once_and_released(spark: Any, tmp_path: Path) -> None:
    crowd = Crowd(survey(), 150)
    made = crowd.answer("flow", number=10, steps=4)
    bad = (crowd.rows[0][0], b"x" * 16, b"no report")
    half = len(crowd.rows) // 2
    land(crowd, tmp_path / "landing", ["a", "b", "c"], [*crowd.rows[:half], bad])
    assert run(spark, tmp_path).counts("landing")["rows"] <= half + 1
    # More files, of which one has all that was sent before.
    land(crowd, tmp_path / "landing", ["d", "e"], [*crowd.rows[half:], *crowd.rows[:half], bad])
    sink = run(spark, tmp_path)
    assert sink.folded().sketches == of_files(tmp_path).sketches
    assert sink.counts("landing")["malformed"] == 1
    sink.close(crowd.collection, "flow", 13)
    assert told(releases(sink.folded("flow"), crowd.collection, "flow", number=10, steps=4)) == told(made)

    # A checkpoint that is lost reads everything again: refused, and nothing is changed.
    before = sink.folded().to_bytes()
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException, match="reads everything again"):
        run(spark, tmp_path, "another")
    assert sink.folded().to_bytes() == before
    shutil.rmtree(tmp_path / "another")
    sink.begin_again("landing")
    assert run(spark, tmp_path, "another").folded().to_bytes() == before
    assert sink.counts("landing")["late"] == sum(sketch.n for sketch in sink.folded().sketches.values())


def test_a_batch_that_comes_again_changes_nothing_and_its_ids_are_kept(spark: Any, tmp_path: Path) -> None:
    """As after a kill between the commit of the sink and that of Spark, whose state of the batch is gone too."""
    crowd = Crowd(survey(), 50)
    crowd.answer("looks", number=10, steps=1)
    land(crowd, tmp_path / "landing", ["a"], crowd.rows)
    before = run(spark, tmp_path).folded().to_bytes()
    checkpoint = tmp_path / "checkpoint"
    lost = [*(checkpoint / "commits").glob("*0*"), *(checkpoint / "state").rglob("*1.delta*")]
    assert len(lost) >= 4
    for path in lost:  # with their sums
        path.unlink()
    assert run(spark, tmp_path).folded().to_bytes() == before
    land(crowd, tmp_path / "landing", ["b"], crowd.rows)
    assert run(spark, tmp_path).folded().to_bytes() == before


def test_the_example_of_streams_releases_each_day(spark: Any) -> None:
    released = spark_stream.main(spark, people=3000, days=2)
    assert [release.step for release in released] == [30, 31]
    assert [release.own.n for release in released if release.own] == [3000, 3000]


def test_a_stream_of_other_columns_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    rows = spark.readStream.schema("collection string, id binary").parquet(str(tmp_path / "landing"))
    with pytest.raises(InvalidValue, match="one column 'version'"):
        fold_stream(rows, survey(), SketchSink(tmp_path / "s.db"), checkpoint=str(tmp_path / "checkpoint"))


def has_more(sink: SketchSink, rows: int, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the query has stopped by itself"
    return sink.counts("landing").get("rows", 0) > rows


def kills_of_a_query(tmp_path: Path, kills: int) -> None:
    """Kill the query with its JVM and its workers, again and again, while files land: nothing lost, nothing twice."""
    crowd, chance = Crowd(survey(), 100), random.Random(4)
    crowd.answer("flow", number=10, steps=4)
    rows = [*crowd.rows, *chance.choices(crowd.rows, k=200)]
    sink = SketchSink(tmp_path / "sketches.db")
    (tmp_path / "landing").mkdir()
    command = [sys.executable, "-m", "tests.spark.engine.stream_world", str(tmp_path)]
    for kill in range(kills):
        log = (tmp_path / f"log-{kill}").open("wb")
        process = subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)
        before = sink.counts("landing").get("rows", 0)
        land(crowd, tmp_path / "landing", [f"{kill}-{part}" for part in range(3)], rows[kill::kills])
        if kill % 5:  # some are killed before they have added up anything
            wait_for(partial(has_more, sink, before, process), seconds=300)
        time.sleep(chance.random() * 2)  # whenever it dies, the rest of the test holds
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    last = subprocess.Popen(command, start_new_session=True)
    (tmp_path / "stop").touch()
    assert last.wait(timeout=600) == 0
    assert (tmp_path / "done").exists()
    expected = of_files(tmp_path)
    assert sink.folded().sketches == expected.sketches
    assert expected.n == len({identity for _, identity, _ in crowd.rows})


def test_three_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    kills_of_a_query(tmp_path, 3)


@pytest.mark.slow
def test_twenty_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    kills_of_a_query(tmp_path, 20)
