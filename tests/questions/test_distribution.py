"""A distribution in a collection: checked, planned, promised, answered by devices, restarted, released and shown."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.questions.settings import setting
from tests.questions.test_one_file import KEYS, SHELF, TOKEN, Twins

from hubbub import Categorical, Numeric, Random
from hubbub.authoring import check, forecast, load_collection, promise
from hubbub.authoring.poisoning import poisoning
from hubbub.client import Client
from hubbub.collection import ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.protocols.ask import MAIN
from hubbub.questions import Question

TEXT = """
name = "survey"
version = 1
title = "Taxi rides"

[schedule]
step = "1h"
lateness = "10m"

[privacy]
event = 6.0
minimum_batch = 20

[fields.fare]
kind = "numeric"
low = 0.0
high = 80.0
cells = 16

[questions.fares]
kind = "distribution"
field = "fare"
epsilon = 6.0
quantiles = [0.5, 0.95]
"""
DEVICES, STEPS = 24, range(7, 9)
FARE = Numeric(0.0, 80.0, cells=16)


def test_it_is_checked_planned_and_promised() -> None:
    collection = load_collection(TEXT)
    (row,) = forecast(collection)
    assert (row.kind, row.mechanism) == ("distribution", "SquareWave")
    errors = row.errors[1000], row.errors[100_000]
    assert errors[0] == pytest.approx(10 * errors[1])
    assert not [finding for finding in check(collection) if finding.level == "error"]
    assert "Of fare: how is it distributed? One report every hour." in promise(collection)


def test_it_says_how_far_forged_reports_move_the_mean() -> None:
    question = Question.make("distribution", field="fare", epsilon=1.0)
    said = poisoning(question, setting(question, FARE), forged=0.01)
    assert said.text().startswith("If 1% of the devices are forged, they can raise the mean of fare by up to ")
    assert "shares and quantiles are not bounded" in said.text()
    assert said.up is not None
    assert 0.8 < said.up < 3.2  # of 80: at least what lying does, at most four times that


@pytest.mark.parametrize(
    ("keys", "domain", "named"),
    [
        ({}, Categorical(["a", "b"]), "field"),
        ({"mechanism": "Hybrid"}, FARE, "mechanism"),
        ({"quantiles": [1.5]}, FARE, "quantiles"),
        ({"quantiles": []}, FARE, "quantiles"),
        ({}, Numeric(0.0, 1.0, cells=2000), "cells"),
    ],
)
def test_what_cannot_be_asked_is_refused(keys: dict[str, Any], domain: Any, named: str) -> None:
    question = Question.make("distribution", field="fare", epsilon=1.0, **keys)
    with pytest.raises(InvalidValue) as refused:
        question.check(setting(question, domain))
    assert refused.value.field == named


def test_a_release_holds_the_truth() -> None:
    """20,000 fares around 15: seeded; each of the five intervals misses once in 20 other seeds."""
    question = Question.make("distribution", field="fare", epsilon=2.0, quantiles=[0.5, 0.95])
    protocol = question.protocol(setting(question, FARE))
    ask: Any = next(protocol)
    fares = 30.0 * (Random(seed=2).uint64(20_000, 3) / 2.0**64).mean(axis=1)
    heard = ask.mechanism.accumulate(ask.mechanism.randomize(ask.view(fares), Random(seed=3)))
    release: Any = protocol.send(heard)
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
        assert high[place] - low[place] < (0.1 if estimate is shares else 8.0)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=SHELF) as name:
        yield Path(name)


def test_it_is_answered_released_and_shown(folder: Path) -> None:
    collection = load_collection(TEXT)
    clock = ManualClock(collection.opens(STEPS[0]))
    twins = Twins(collection, clock, folder)
    given: dict[str, Any] = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "survey"}
    devices = [
        Client(folder / str(number), twins, KEYS.public, rng=Random(seed=number), **given) for number in range(DEVICES)
    ]
    for step in STEPS:
        clock.set(collection.opens(step) + 0.1 * collection.step_seconds)
        twins.tick()
        for number, client in enumerate(devices):
            client.record("fare", 10.0 + number % 3)
            assert client.tick() == 1
            assert client.upload() == 1
        clock.set(collection.opens(step) + 0.9 * collection.step_seconds)
        twins.restarted.restart()
    clock.set(collection.opens(STEPS[-1] + 1) + collection.lateness_seconds + 1)
    twins.tick()
    steady, restarted = (
        collector.releases("survey", "fares", first=0, last=99, most=99)
        for collector in (twins.steady.collector, twins.restarted.collector)
    )
    assert [(row.step, row.payload) for row in steady] == [(row.step, row.payload) for row in restarted]
    assert [json.loads(row.payload)["n"] for row in restarted] == [24, 24]
    for client in devices:
        client.close()
    _shown(twins.restarted.collector)
    for collector in (twins.steady.collector, twins.restarted.collector):
        collector.store.close()


def _shown(collector: Any) -> None:
    from hubbub.dashboard.app import ServiceReader
    from hubbub.dashboard.pages import routes
    from hubbub.service.app import create_app
    from hubbub.service.auth import Tokens
    from hubbub.service.service import Service

    service = Service(collector)
    site = create_app(service, Tokens([TOKEN]), routes=routes(ServiceReader(service)))

    async def fetch(path: str) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url="http://here") as client:
            return await client.get(path, headers={"Authorization": f"Bearer {TOKEN}"})

    found = asyncio.run(fetch("/v1/collections/survey/questions/fares/releases")).json()
    assert found["shape"]["form"] == "distribution"
    quantiles = found["releases"][-1]["estimates"]["Quantiles"]
    assert quantiles["labels"] == ["median", "95% are below"]
    assert quantiles["low"][0] <= 11 <= quantiles["high"][0]
    page = asyncio.run(fetch("/results/survey/fares")).text
    assert "<caption>Quantiles</caption>" in page
    assert "median" in page
