"""Releases whose values are smoothed over time: their intervals are shown around the step's own, and never leak."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hubbub.core.estimate import Estimate
from hubbub.dashboard.reader import AnswerCard
from hubbub.protocols.driver import MAIN, OWN, Release
from hubbub.service.rounds.releases import release_json, release_row

OF_STEP = Estimate([0.25, 0.75], [0.0025, 0.01], 40)
SMOOTH = Estimate([0.5, 0.5], [0.0025, 0.01], 40, bias="heuristic", centre=OF_STEP.value)
RELEASE = Release(step=7, estimates={MAIN: SMOOTH, OWN: OF_STEP}, published=True, spent=0.125, n=40.0)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_is_the_estimates(level: float) -> None:
    shown = release_json(
        release_row(RELEASE, collection="0" * 32, question="q", time=0.0, minimum_batch=1), level=level
    )
    low, high = SMOOTH.interval(level)
    assert (shown["low"], shown["high"]) == (pytest.approx(low.tolist()), pytest.approx(high.tolist()))
    own = shown["estimates"]["own"]  # type: ignore[index, call-overload]
    assert own["low"] == pytest.approx(OF_STEP.interval(level)[0].tolist())  # type: ignore[index, call-overload]


def test_the_page_shows_the_same_interval() -> None:
    row = release_row(RELEASE, collection="0" * 32, question="q", time=0.0, minimum_batch=1)
    answer = AnswerCard.of(json.loads(row.payload), question="q", step=7, time=0.0, withheld=None)
    low, high = SMOOTH.interval(0.95)
    assert [value.low for value in answer.values] == pytest.approx(low.tolist())
    assert [value.high for value in answer.values] == pytest.approx(high.tolist())


def test_what_is_withheld_shows_no_number_at_all() -> None:
    row = release_row(RELEASE, collection="0" * 32, question="q", time=0.0, minimum_batch=50)
    text = json.dumps(release_json(row))
    assert row.withheld is not None
    for number in np.concatenate([SMOOTH.value, OF_STEP.value, OF_STEP.variance]):
        assert f"{number}," not in text.replace("]", ",")


def test_an_interval_that_is_not_known_is_null() -> None:
    silent = Estimate([0.5, 0.5], [np.inf, np.inf], 40, bias="heuristic")
    release = Release(step=8, estimates={MAIN: silent}, published=False, spent=0.0, n=40.0)
    shown = release_json(release_row(release, collection="0" * 32, question="q", time=0.0, minimum_batch=1))
    assert (shown["value"], shown["low"], shown["high"]) == ([0.5, 0.5], [None, None], [None, None])


def test_what_is_withheld_names_nothing_that_was_found() -> None:
    place: Any = {"collection": "0" * 32, "question": "words", "time": 0.0, "minimum_batch": 20}
    ranking = Estimate([0.5, 0.2], [0.01, 0.01], 10, labels=("hub", "bub"))
    rules = Estimate([0.4], [0.01], 10, labels=("hub -> bub",))
    release = Release(step=0, estimates={"top": ranking, "Confidence": rules}, published=True, spent=1.0, n=10.0)
    row = release_row(release, **place)
    assert "bub" not in json.dumps(release_json(row))
    alone = release_row(replace(release, estimates={"top": replace(ranking, n=40), "Confidence": rules}), **place)
    assert "hub -> bub" not in json.dumps(release_json(alone))
