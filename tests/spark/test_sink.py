"""A sink adds up each batch once, whatever is killed or restored, and its closed steps change no more."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.backends.folding import Folded, FoldPlan, fold
from hubbub.backends.report_files import SketchKey, landing_batch, row_bytes
from hubbub.core.errors import InvalidValue
from hubbub.core.migrations import UnknownFormat
from hubbub.spark import DataFrameFold, SinkRefused, SketchSink, releases
from tests.shared.landed_crowd import Crowd, survey, told

OLH = hb.OLH(epsilon=1.0, domain=5)
KEY = SketchKey("survey", 1, "looks", 0, 7, 1, 0, OLH.spec_id)


def some(n: int, seed: int = 1, step: int = 7) -> DataFrameFold:
    """What n reports to a step are folded into."""
    reports = row_bytes(OLH, OLH.randomize([1] * n, hb.Random(seed=seed)))
    rows = [(KEY._replace(step=step), bytes(16), report) for report in reports] + [(KEY, bytes(16), b"bad")]
    return DataFrameFold(Folded.from_bytes(fold(landing_batch(rows, [OLH]), FoldPlan().to_json())), n + 1, 0)


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> SketchSink:
    if request.param == "SQLite":
        return SketchSink(tmp_path / "sketches.db")
    database: Callable[[], str] = request.getfixturevalue("postgres")
    return SketchSink(database())


def test_a_batch_counts_once(sink: SketchSink) -> None:
    assert sink.folded().to_bytes() == Folded({}, False).to_bytes()
    assert [sink.commit("landing", "q", batch, some(5, batch)) for batch in (0, 1, 1, 0, 2)] == [
        True, True, False, False, True,
    ]  # fmt: skip
    other = some(3, 9)
    assert sink.commit("archive", "other", 0, other)
    expected = other.folded
    for batch in range(3):
        expected.merge(some(5, batch).folded)
    assert sink.folded("looks").sketches == expected.sketches
    assert sink.folded("nothing").n == 0
    assert sink.counts("landing") == {"malformed": 3, "repeated": 0, "rows": 18}
    assert SketchSink(sink.place).folded().sketches == expected.sketches


def test_a_query_that_reads_anew_or_lost_batches_is_refused(sink: SketchSink) -> None:
    sink.commit("landing", "q", 0, some(5))
    before = sink.folded().to_bytes()
    for query, batch, why in (
        ("q2", 0, "reads everything again"),
        ("q2", 7, "q2"),
        ("q", 2, "what was between is lost"),
    ):
        with pytest.raises(SinkRefused, match=why):
            sink.has("landing", query, batch)
        with pytest.raises(SinkRefused, match=why):
            sink.commit("landing", query, batch, some(5))
    with pytest.raises(SinkRefused, match="older than the query's checkpoint"):
        sink.commit("elsewhere", "q3", 4, some(5))
    assert sink.folded().to_bytes() == before
    sink.begin_again("landing")
    assert sink.folded().n == 0
    assert sink.commit("landing", "q2", 0, some(4))
    assert sink.counts("landing") == {"malformed": 1, "repeated": 0, "rows": 5}


def test_closed_steps_change_no_more(sink: SketchSink) -> None:
    collection = survey()
    sink.commit("landing", "q", 0, some(5, step=7))
    sink.close(collection, "looks", 7)
    sink.close(collection, "looks", 3)
    before = sink.folded().to_bytes()
    sink.commit("landing", "q", 1, some(4, step=7))
    assert sink.folded().to_bytes() == before
    sink.commit("landing", "q", 2, some(2, step=8))
    assert {key.step: sketch.n for key, sketch in sink.folded().sketches.items()} == {7: 5, 8: 2}
    assert sink.counts("landing")["late"] == 4
    sink.begin_again("landing")
    assert {key.step: sketch.n for key, sketch in sink.folded().sketches.items()} == {7: 5}
    for question in ("words", "unknown"):
        with pytest.raises(InvalidValue, match="asked in steps"):
            sink.close(collection, question, 1)


def test_a_window_stream_is_released_from_a_sink(sink: SketchSink) -> None:
    crowd = Crowd(survey())
    made = crowd.answer("flow", number=10, steps=6)
    unique = list({row[1]: row for row in crowd.rows}.values())
    for batch in range(4):
        part = landing_batch(unique[batch::4], list(crowd.mechanisms.values()))
        folded = Folded.from_bytes(fold(part, FoldPlan().to_json()))
        sink.commit("landing", "q", batch, DataFrameFold(folded, part.num_rows, 0))
    sink.close(crowd.collection, "flow", 15)
    assert told(releases(sink.folded("flow"), crowd.collection, "flow", number=10, steps=6)) == told(made)


def test_a_sink_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    SketchSink(tmp_path / "s.db")
    assert (tmp_path / "s.db").stat().st_mode & 0o77 == 0
    with sqlite3.connect(tmp_path / "s.db") as database:
        database.execute("UPDATE hubbub_sink SET format = 2")
    database.close()
    with pytest.raises(UnknownFormat, match="format 2"):
        SketchSink(tmp_path / "s.db")


def test_two_processes_add_up_one_batch_once(tmp_path: Path) -> None:
    """As when a query is started again while the one before is not quite dead."""
    place = tmp_path / "s.db"
    SketchSink(place)
    program = (
        "import sys; from tests.spark.test_sink import *; sink = SketchSink(sys.argv[1]);"
        "print([sink.commit('landing', 'q', batch, some(5, batch)) for batch in range(10)].count(True))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(place)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    done = [process.communicate()[0] for process in processes]
    assert sum(map(int, done)) == 10
    assert SketchSink(place).folded().n == 50


def test_what_rests_on_too_few_reports_is_withheld() -> None:
    crowd = Crowd(survey(minimum_batch=200), 199)
    crowd.answer("looks", number=4, steps=2)
    once = [row for row in crowd.rows if row[0].step == 5][:199]  # of step 4, some are there twice
    rows = [row for row in crowd.rows if row[0].step == 4] + once
    folded = Folded.from_bytes(fold(landing_batch(rows, list(crowd.mechanisms.values())), FoldPlan().to_json()))
    first, second = releases(folded, crowd.collection, "looks", number=4, steps=2)
    assert (first.step, first.estimate.n, first.stopped) == (4, 238, None)
    assert (second.step, dict(second.estimates)) == (5, {})
    assert second.stopped == "withheld: 199 reports; at least 200 are needed"
