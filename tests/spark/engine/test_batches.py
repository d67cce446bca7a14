"""An engine that speaks Spark's DataFrames has the bytes that every other engine has."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.backends import folding
from hubbub.backends.folding import Folded, FoldPlan
from hubbub.backends.report_files import SketchKey, landing_batch, row_bytes
from hubbub.backends.report_rows import MOST_WEIGHT
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import ReportFormat
from hubbub.query.engine import QueryEngine
from hubbub.questions.table_reports import table_of_reports
from hubbub.spark import fold, next_asks, plan_of, releases, table
from tests.shared.landed_crowd import Crowd, survey, told
from tests.shared.report_rows import BAD, EVERY, rows_of, some_reports, with_bad_rows

Frame = Callable[..., Any]
OLH = hb.OLH(epsilon=1.0, domain=5)
ALL = FoldPlan(specs={mechanism.spec_id: mechanism.spec() for mechanism in EVERY})
OF_OLH = FoldPlan(specs={OLH.spec_id: OLH.spec()})


def question_of(mechanism: ReportFormat) -> str:
    return f"asked by {type(mechanism).__name__}"


def rows_with_bad(mechanism: ReportFormat) -> pa.RecordBatch:
    """The suite's rows of a mechanism, all under a question of its own: one job adds up those of all mechanisms."""
    return with_bad_rows(rows_of(mechanism, question_of(mechanism))[0], mechanism)


@pytest.fixture(scope="module")
def every(frame: Frame) -> dict[bool, folding.Folded]:
    """All mechanisms at once, with and without a comparison of ids."""
    df = frame(*map(rows_with_bad, EVERY))
    return {repetitions: fold(df, ALL, repetitions=repetitions).folded for repetitions in (True, False)}


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda each: type(each).__name__)
def test_a_mechanism_has_the_same_sketches(mechanism: ReportFormat, every: dict[bool, Folded]) -> None:
    _, groups = rows_of(mechanism, question_of(mechanism))
    expected = {key: mechanism.accumulate(reports) for key, reports in groups.items()}
    for folded in every.values():
        own = {key: sketch for key, sketch in folded.sketches.items() if key.question == question_of(mechanism)}
        assert own == expected


def test_the_bytes_are_those_of_every_other_engine(every: dict[bool, Folded]) -> None:
    each = (folding.fold(rows_with_bad(mechanism), ALL.to_json()) for mechanism in EVERY)
    expected = reduce(folding.merge, each)
    assert {name: folded.to_bytes() == expected for name, folded in every.items()} == {True: True, False: True}
    assert every[True].left_out["bad_id"] == BAD["bad_id"] * len(EVERY)


def test_a_report_that_was_sent_again_counts_once(frame: Frame) -> None:
    rng = np.random.default_rng(5)
    reports = some_reports(OLH, 3000)
    key = SketchKey("survey", 1, "theme", 0, 7, 1, 0, OLH.spec_id)
    rows = [(key, rng.bytes(16), row) for row in row_bytes(OLH, reports)]
    again = [rows[at] for at in rng.integers(0, 3000, 700)]
    elsewhere = [(key._replace(step=8), rows[at][1], rows[at][2]) for at in range(50)]
    df = frame(landing_batch([*again[:350], *rows], [OLH]), landing_batch([*elsewhere, *again[350:]], [OLH]))
    result = fold(df, OF_OLH, buckets=11)
    assert (result.rows, result.repeated) == (3750, 700)
    assert result.folded.sketches[key] == OLH.accumulate(reports)
    assert result.folded.sketches[key._replace(step=8)].n == 50
    assert fold(df, OF_OLH, repetitions=False).folded.n == 3750


def test_nothing_is_a_fold_too(frame: Frame) -> None:
    result = fold(frame(landing_batch(rows_of(OLH)[0], [OLH])).where("step < 0"), OF_OLH)
    assert (result.folded.sketches, result.folded.left_out, result.rows) == ({}, {}, 0)


def test_reports_of_another_spec_are_left_out(frame: Frame) -> None:
    other = hb.OLH(epsilon=1.0, domain=6)
    df = frame(landing_batch(rows_of(OLH)[0], [OLH]))
    folded = fold(df, FoldPlan(specs={other.spec_id: other.spec()})).folded
    assert (folded.sketches, folded.left_out) == ({}, {"unknown_spec": 65})
    with pytest.raises(InvalidValue, match="carry no metadata"):
        fold(df, FoldPlan())
    with pytest.raises(InvalidValue, match="one column 'report'"):
        fold(df.drop("report"), OF_OLH)
    with pytest.raises(InvalidValue, match="step: got 'string'"):
        fold(df.withColumn("step", df["step"].cast("string")), OF_OLH)


def test_supports_of_candidates_and_weights_are_those_of_the_mechanism(frame: Frame) -> None:
    rows, groups = rows_of(OLH)
    key, reports = next(iter(groups.items()))
    plan = FoldPlan(specs=OF_OLH.specs, candidates={"theme": [4, "1"]})
    assert fold(frame(landing_batch(rows, [OLH])), plan).folded.sketches[key] == OLH.support(reports, [4, 1])
    mine = [(key, bytes([at]) * 16, each) for at, each in enumerate(row_bytes(OLH, some_reports(OLH, 66)))]
    weights = [*range(-30, 34), None, MOST_WEIGHT + 1]
    batch = landing_batch(mine, [OLH]).append_column("worth", pa.array(weights, pa.int32()))
    folded = fold(frame(batch), FoldPlan(specs=OF_OLH.specs, weight="worth")).folded
    assert folded.sketches == {key: OLH.support(some_reports(OLH, 66)[:64], list(range(5)), np.arange(-30, 34))}
    assert folded.left_out == {"bad_weight": 2}


def test_a_screen_of_the_reports_is_the_same(frame: Frame) -> None:
    batch = landing_batch(rows_of(OLH)[0], [OLH])
    plan = replace(OF_OLH, screen=True)
    assert fold(frame(batch), plan).folded.to_bytes() == folding.fold(batch, plan.to_json())
    assert fold(frame(batch), OF_OLH).folded.to_bytes() != folding.fold(batch, plan.to_json())


def test_a_collection_takes_its_own_reports(frame: Frame) -> None:
    crowd = Crowd(survey(), 200)
    crowd.answer("looks", number=4, steps=3)
    rows = crowd.rows
    others = [(key._replace(collection="other"), identity, report) for key, identity, report in rows[:30]]
    others += [(key._replace(version=2), identity, report) for key, identity, report in rows[:30]]
    mechanism = crowd.mechanisms[rows[0][0].spec_id]
    batch = with_bad_rows(rows, mechanism)
    result = fold(frame(batch, with_bad_rows(others, mechanism)), crowd.collection)
    assert {key.step: sketch.n for key, sketch in result.folded.sketches.items()} == {4: 200, 5: 200, 6: 200}
    # Of the bad rows of other collections, those that name a collection are passed over.
    assert result.folded.left_out == BAD
    named = fold(frame(batch), plan_of(crowd.collection, questions=["looks"], first=5, last=5)).folded
    assert [key.step for key in named.sketches] == [5]


@pytest.mark.parametrize("question", ["words", "together"])
def test_a_study_over_kept_rows_is_the_study_that_was_made(question: str, frame: Frame) -> None:
    crowd = Crowd(survey())
    made = crowd.answer(question)
    df = frame(crowd.batch())
    assert told(releases(df, crowd.collection, question)) == told(made)
    assert made[-1].stopped is None
    assert len(made[-1].estimate) > 0


def test_the_asks_of_the_next_round_follow_from_the_rows_so_far(frame: Frame) -> None:
    crowd = Crowd(survey())
    from pyspark.sql.functions import concat, lit

    crowd.answer("together")
    df = frame(crowd.batch())
    first = next_asks(df.where("round < 1"), crowd.collection, "together")
    assert [name.round for name, _ in first] == [1]
    third = next_asks(df.where("round < 3"), crowd.collection, "together", rounds=2)
    assert {key[2:] for key, _, _ in crowd.rows if key.round == 3} == {
        (*name, ask.mechanism.spec_id) for name, ask in third
    }
    with pytest.raises(InvalidValue, match="reports to an earlier ask are missing"):
        releases(df.withColumn("spec_id", concat(df["spec_id"], lit("f"))), crowd.collection, "together")


def test_a_stream_is_released_from_folded_rows(frame: Frame) -> None:
    crowd = Crowd(survey())
    crowd.answer("words")
    made = crowd.answer("flow", number=10, steps=6)
    folded = fold(frame(crowd.batch()), crowd.collection).folded
    assert told(releases(folded, crowd.collection, "flow", number=10, steps=6)) == told(made)
    with pytest.raises(InvalidValue, match="a DataFrame"):
        releases(folded, crowd.collection, "words")


def test_a_table_question_over_rows_is_asked_by_sql(frame: Frame) -> None:
    crowd = Crowd(survey())
    crowd.answer("asked", number=4, steps=3)
    kept = [(name.step, name.part, reports) for name, reports in crowd.kept.items() if name.step < 6]
    expected = QueryEngine(table_of_reports(crowd.collection, "asked", kept))
    engine = table(frame(crowd.batch()), crowd.collection, "asked", last=5)
    assert engine.table.n == expected.table.n
    for query in ("COUNT(*)", "AVG(level)"):
        text = f"SELECT {query} FROM asked WHERE theme = 'dark'"
        (answer,), (other,) = engine.sql(text).rows, expected.sql(text).rows
        assert answer == pytest.approx(other)
