"""A distribution in a collection: checked, planned, promised, answered by devices, restarted, released and shown."""

from typing import Any

import numpy as np
import pytest

from hubbub import Numeric, Random
from hubbub.authoring import check, forecast, load_collection, promise
from hubbub.authoring.forecast import poisoning
from hubbub.protocols.driver import MAIN
from hubbub.questions import Question
from tests.questions.settings import placed
from tests.shared.small_collections import collection_text
from tests.shared.whole_way import answered

TEXT = collection_text(
    "survey",
    "Taxi rides",
    privacy={"event": 6.0, "minimum_batch": 20},
    fields={"fare": {"kind": "numeric", "low": 0.0, "high": 80.0, "cells": 16}},
    questions={"fares": {"kind": "distribution", "field": "fare", "epsilon": 6.0, "quantiles": [0.5, 0.95]}},
)
STEPS = range(7, 9)
FARE = Numeric(0.0, 80.0, cells=16)


def test_it_is_checked_planned_and_promised() -> None:
    collection = load_collection(TEXT)
    (row,) = forecast(collection)
    assert (row.kind, row.mechanism) == ("distribution", "SquareWave")
    assert row.errors[100_000] is not None
    assert row.errors[1000] == pytest.approx(10 * row.errors[100_000])
    assert not [finding for finding in check(collection) if finding.level == "error"]
    assert "Of fare: how is it distributed? One report every hour." in promise(collection)


def test_it_says_how_far_forged_reports_move_the_mean_and_a_share() -> None:
    question = Question.make("distribution", field="fare", epsilon=1.0)
    bound = poisoning(placed(question, FARE), forged=0.01)
    assert bound.text().startswith("If 1% of the devices are forged, they can raise the mean of fare by up to ")
    assert "1% of 100,000 reports, if forged, move it by up to 17.5 percentage points" in bound.text()
    assert bound.up is not None
    assert 0.8 < bound.up < 3.2  # of 80: at least what lying does, at most four times that


def test_a_release_holds_the_truth() -> None:
    """20,000 fares around 15: seeded; each of the five intervals misses once in 20 other seeds.

    A cell of a sixteenth of the range reaches from 8% to 55%: it is not known on which side of its ends people are.
    """
    question = Question.make("distribution", field="fare", epsilon=2.0, quantiles=[0.5, 0.95])
    protocol = placed(question, FARE).protocol()
    ask: Any = next(protocol)
    fares = 30.0 * (Random(seed=2).uint64(20_000, 3) / 2.0**64).mean(axis=1)
    sketch = ask.mechanism.accumulate(ask.mechanism.randomize(ask.view(fares), Random(seed=3)))
    release: Any = protocol.send(sketch)
    assert list(release.estimates) == [MAIN, "Quantiles", "Mean"]
    shares, quantiles, mean = release.estimates.values()
    assert quantiles.labels == ("median", "95% are below")
    inside = float(np.mean((fares >= 10) & (fares < 15)))
    for estimate, place, truth in (
        (shares, 2, inside),
        (shares, 9, 0.0),
        (quantiles, 0, np.quantile(fares, 0.5)),
        (quantiles, 1, np.quantile(fares, 0.95)),
        (mean, 0, fares.mean()),
    ):
        low, high = estimate.interval()
        assert low[place] <= truth <= high[place]
        assert high[place] - low[place] < (0.5 if estimate is shares else 8.0)


def test_it_is_answered_released_and_shown() -> None:
    collection = load_collection(TEXT)
    with answered(collection, "fares", "fare", lambda number: 10.0 + number % 3, STEPS) as (releases, get):
        assert [release["n"] for release in releases] == [24, 24]
        answer = get("/v1/collections/survey/questions/fares/releases").json()
        assert answer["shape"]["form"] == "distribution"
        quantiles = answer["releases"][-1]["estimates"]["Quantiles"]
        assert quantiles["labels"] == ["median", "95% are below"]
        assert quantiles["low"][0] <= 11 <= quantiles["high"][0]
        page = get("/results/survey/fares").text
        assert "<caption>Quantiles</caption>" in page
        assert "median" in page
