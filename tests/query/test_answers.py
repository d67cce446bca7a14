"""Answers in every form: Arrow, pandas, polars, JSON, text and bars."""

import datetime
import math

import matplotlib as mpl
import pytest
from rich.console import Console

from hubbub.core.errors import InvalidValue
from hubbub.query.answer import AnswerColumn, QueryAnswer
from hubbub.query.intervals import AnswerInterval

mpl.use("agg")
COLUMNS = (AnswerColumn("day", False), AnswerColumn("n", True, "a sum"), AnswerColumn("mean", True))
ROWS = (
    (datetime.date(2024, 2, 1), AnswerInterval(-3.0, -9.0, 3.0, 3.06, 0.0, 100.0), AnswerInterval(2.5, 2.0, 3.0, 0.25)),
    (None, AnswerInterval(40.0, 30.0, 50.0, 5.0, 0.0, 45.0), AnswerInterval(math.nan, -math.inf, math.inf, math.inf)),
)
ANSWER = QueryAnswer(COLUMNS, ROWS, 0.95, 100, notes=("a note",))


def test_frames_hold_estimates_as_they_are() -> None:
    arrow = ANSWER.to_arrow()
    assert arrow.column_names == ["day", "n", "n_low", "n_high", "mean", "mean_low", "mean_high"]
    assert arrow["n"].to_pylist() == [-3.0, 40.0]
    assert arrow["mean"].to_pylist() == [2.5, None]
    assert ANSWER.to_pandas()["n_low"].tolist() == [-9.0, 30.0]
    assert ANSWER.to_polars()["n_high"].to_list() == [3.0, 50.0]
    assert ANSWER.column("n") == [row[1] for row in ROWS]


def test_json_comes_back_as_it_went() -> None:
    back = QueryAnswer.from_json(ANSWER.to_json())
    assert back.to_json() == ANSWER.to_json()
    assert back.rows[0][0] == "2024-02-01"  # JSON has no dates
    assert back.column("n") == ANSWER.column("n")
    assert math.isnan(back.rows[1][2].value)
    assert back.rows[1][2].high == math.inf


def test_text_is_cut_to_what_is_possible() -> None:
    assert str(ANSWER).splitlines()[1:] == [
        "2024-02-01  0  0 to 3  2.5  2 to 3",
        "NULL  40  30 to 45  NULL  unknown",
    ]
    console = Console(width=100)
    with console.capture() as shown:
        console.print(ANSWER)
    assert "30 to 45" in shown.get()


def test_bars_are_of_the_estimate_that_is_asked_for() -> None:
    assert ANSWER.plot().get_xlabel() == "n"
    assert ANSWER.plot("mean").get_xlabel() == "mean"
    with pytest.raises(InvalidValue, match="one of the estimates n, mean"):
        ANSWER.plot("day")


def test_one_estimate_is_a_value_and_several_are_none() -> None:
    assert QueryAnswer(COLUMNS[1:2], (ROWS[0][1:2],), 0.95, 100).value().value == -3.0
    with pytest.raises(InvalidValue, match="one estimate"):
        ANSWER.value()
    with pytest.raises(InvalidValue, match="one of day, n, mean"):
        ANSWER.column("m")
