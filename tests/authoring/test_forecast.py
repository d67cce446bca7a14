"""What `hubbub plan FILE` says is what happens."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import hubbub as hb
from hubbub import Ordinal, Sets, Strings
from hubbub.authoring import check, forecast
from hubbub.authoring.forecast import DEVICES, groups_need
from hubbub.core.domain.vector import Vector
from hubbub.core.reports import Sketch
from hubbub.planning.minimax import shares_floor, squared_floor
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import converse
from hubbub.protocols.window import METHODS
from hubbub.questions import Question, StatisticQuestion
from hubbub.questions.collection import Collection
from tests.collection.conftest import FIELDS, QUESTIONS, make
from tests.questions.settings import placed
from tests.shared.asks import answered

QUICK: dict[str, Any] = {
    "shares": QUESTIONS["levels"],
    "cells": QUESTIONS["times"],
    "memo": QUESTIONS["kept_level"],
    "LBU": Question.make(kind="stream", field="level", epsilon=2.0, method="LBU", w=4),
    "LPU": Question.make(kind="stream", field="level", epsilon=1.0, method="LPU", w=4),
    "LSP": Question.make(kind="stream", field="level", epsilon=1.0, method="LSP", w=1),
    "mean": QUESTIONS["time"],
    "stream of means": Question.make(kind="stream", field="seconds", epsilon=2.0, method="LPU", w=2),
}


def measured(question: Any, people: int, steps: int) -> float:
    """The mean squared error of a number of releases, of a population in which all values are alike."""
    collection = make(questions={"q": question})
    asked = placed(question, FIELDS[question.field]).statistic()
    rng, mean = np.random.default_rng(7), asked.size == 1
    codes = np.full(people, 10.0) if mean else np.arange(people) % asked.size
    values = codes if mean or question.field != "seconds" else codes * 2.5 + 1.0
    truth = np.array([10.0]) if mean else np.full(asked.size, 1 / asked.size)

    def answer(ask: Ask) -> Sketch:
        part = rng.permutation(values)[: round(people * ask.cohort.share)]
        return answered(ask, part, hb.Random(seed=ask.step))

    releases = converse(collection.protocol("q"), answer, steps=steps)
    own = [release.own for release in releases]  # before filtering
    return float(np.mean([np.mean((estimate.value - truth) ** 2) for estimate in own if estimate is not None]))


@pytest.mark.parametrize("name", QUICK)
def test_the_expected_error_is_the_error(name: str) -> None:
    """The ratio of two variances over some 1,200 numbers has a standard error of 4%: 20% off is a chance of 1e-6.

    A standard error that is 30% off would be a ratio of 1.69 or 0.59.
    """
    question = QUICK[name]
    question = placed(question, FIELDS[question.field])
    people, steps = 880, 1200 // question.shape().size
    expected = question.forecast(people)
    assert expected is not None
    ratio = measured(question, people, steps) / expected**2
    assert 0.8 < ratio < 1.2
    for off in (1.3**2, 0.7**2):
        assert not 0.8 < ratio / off < 1.2


def test_every_question_has_a_row(everything: Collection) -> None:
    rows = {row.question: row for row in forecast(everything)}
    assert list(rows) == list(everything.questions)
    for name, row in rows.items():
        question = everything.questions[name]
        errors = [row.errors[n] for n in DEVICES]
        if name == "words":
            assert errors == [None] * 4
            continue
        for few, many in pairwise(errors):
            assert few == pytest.approx((many or 0.0) * 10**0.5, rel=1e-6)
        assert row.unit == ("seconds" if name in ("time", "time_now") else "share")
        assert isinstance(question, StatisticQuestion)
        assert row.report_bytes >= question.mechanism_for().report_bytes
        assert row.note
    assert rows["themes"].epsilon_a_year == pytest.approx(8760)
    assert rows["theme_now"].epsilon_a_year == pytest.approx(2190)
    assert rows["kept"].epsilon_a_year == pytest.approx(2.0)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_an_error(method: str) -> None:
    question = Question.make(kind="stream", field="theme", epsilon=1.0, method=method, w=20)
    (row,) = forecast(make(questions={"q": question}))
    assert row.note
    assert all(error is not None and 0 < error < 5 for error in row.errors.values())
    better = replace(question, epsilon=2.0)
    assert placed(better, FIELDS["theme"]).forecast(10_000) < row.errors[10_000]  # type: ignore[operator]


def test_where_nobody_would_be_asked_there_is_no_error() -> None:
    question = Question.make(kind="stream", field="theme", epsilon=1.0, method="LPU", w=2000)
    assert placed(question, FIELDS["theme"]).forecast(1000) is None


def study(kind: str, **keys: Any) -> Collection:
    """A collection with one study, in two turns."""
    field = {"basket": Sets(Ordinal(100), most=4)} if kind == "itemsets" else {"word": Strings(longest=4)}
    dates = {"start": "2027-01-15T08:00Z", "round": "1h", "every": "1d", "turns": 2}
    question = Question.make(kind, field=next(iter(field)), epsilon=2.0, **dates, **keys)
    return make(fields=field, questions={"study": question}, minimum_batch=50)


@pytest.mark.parametrize("keys", [{"k": 4}, {"k": 60}, {"k": 4, "of": "items"}, {"k": 60, "of": "items"}])
def test_a_study_of_items_says_how_many_devices_its_smallest_released_group_needs(keys: dict[str, Any]) -> None:
    """The release of a run with that many devices rests on the minimum; check and plan name the number."""
    collection = study("itemsets", **keys)
    share = collection.questions["study"].released_group()
    people, rng = [(1, 2)] * 40_000, hb.Random(seed=1)

    def answer(ask: Ask) -> Sketch:
        return answered(ask, people[: round(len(people) * ask.cohort.share)], rng)

    (release,) = converse(collection.protocol("study"), answer)
    assert release.estimate.n == pytest.approx(share * len(people), rel=0.001)
    text = groups_need(collection, "study")
    needed = int(text.rsplit(": ", 1)[1].split()[0].replace(",", ""))
    assert 0.0002 < binom.cdf(49, needed, share) < 0.001
    assert [finding.text for finding in check(collection) if finding.where == "questions.study"] == [text]
    (row,) = forecast(collection)
    assert row.note.endswith(text)


def test_a_study_of_words_says_how_many_devices_its_groups_need() -> None:
    collection = study("top", query_limit=1 << 13)
    asks = next(collection.protocol("study"))
    assert isinstance(asks, list)
    share = collection.questions["study"].released_group()
    assert [ask.cohort.share for ask in asks] == pytest.approx([share] * len(asks))
    assert f"{100 * share:.3g}% of the devices, and is withheld below 50 reports" in groups_need(collection, "study")


def test_no_error_is_forecast_for_a_release_that_would_be_withheld() -> None:
    collection = replace(study("itemsets", k=4), minimum_batch=500)  # a tenth of the devices
    assert [error is None for error in forecast(collection)[0].errors.values()] == [True, False, False, False]


def test_the_least_error_of_any_mechanism_stands_next_to_a_forecast() -> None:
    ratings: dict[str, Any] = {"ratings": hb.KeyValue(("alien", "brazil", "casino"), low=-2, high=2, most=1)}
    fields: dict[str, Any] = {**ratings, "step": Vector(8), "page": hb.Ordinal(7), "on": hb.Ordinal(2)}
    fields["tags"] = hb.Sets(hb.Ordinal(6), most=3)
    start = "2026-12-01T00:00Z"
    questions = {
        "liked": Question.make(kind="keyvalue", field="ratings", epsilon=1.0),
        "seen": Question.make(kind="keyvalue", field="ratings", epsilon=1.0, of="frequency"),
        "learn": Question.make(kind="vector", field="step", epsilon=4.0, rounds=2, sparsity=2, clip=0.5, start=start),
        "pages": Question.make(kind="histogram", field="page", epsilon=1.0),
        "tags": Question.make(kind="histogram", field="tags", epsilon=1.0),
        "moves": Question.make(kind="changes", fields=("page", "on"), epsilon=1.0, steps=8, changes=4),
        "both": Question.make(kind="keyvalue", field="ratings", epsilon=1.0, of="conditional"),
    }
    rows = {row.question: row for row in forecast(make(fields=fields, questions=questions))}
    assert not any(rows["both"].least.values())
    n = 100_000
    squared: dict[str, Any] = {"epsilon": 1.0, "n": n}
    assert rows["seen"].least[n] == pytest.approx((shares_floor(size=3, **squared) / 3) ** 0.5)
    assert rows["pages"].least[n] == pytest.approx((shares_floor(size=8, **squared) / 8) ** 0.5)  # and none recorded
    assert rows["tags"].least[n] == pytest.approx((shares_floor(size=6, most=3, **squared) / 6) ** 0.5)
    sums = shares_floor(size=7, **squared) + shares_floor(size=1, **squared)
    assert rows["moves"].least[n] == pytest.approx((sums / 8) ** 0.5)
    of_a_group = squared_floor(epsilon=4.0, dimension=8, sparsity=2, n=50_000)
    assert rows["learn"].least[100_000] == pytest.approx(0.5 * (of_a_group / 8) ** 0.5)
    of_all = squared_floor(epsilon=1.0, dimension=3, sparsity=1, n=100_000)
    assert rows["liked"].least[100_000] == pytest.approx(2 * (of_all / 3) ** 0.5)
    for name in ("liked", "learn", "seen", "pages", "tags", "moves"):
        error, least = rows[name].errors[100_000], rows[name].least[100_000]
        assert error is not None
        assert least is not None
        assert 0 < 2 * least < error
    assert rows["learn"].to_dict()["least"] == {str(n): rows["learn"].least[n] for n in DEVICES}
