"""A new kind of question is one file: check, plan, promise, signing, devices, collector, restart, API and pages."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.questions.distinct import DistinctQuestion
from tests.shared.in_process import KEYS, InProcess
from typer.testing import CliRunner

from hubbub.authoring import check, forecast, load_collection, open_collection, promise
from hubbub.cli.app import app as command
from hubbub.client import Client, Response
from hubbub.collection import Collection, ManualClock, seal
from hubbub.collection.safety import open_collection as open_on_device
from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.questions import QUESTIONS, read_collection

TEXT = """
name = "survey"
version = 1
title = "A survey"

[schedule]
step = "1h"
lateness = "10m"

[privacy]
event = 6.0
minimum_batch = 20

[fields.theme]
kind = "categorical"
names = ["light", "dark", "sepia", "contrast", "paper"]

[questions.in-use]
kind = "distinct"
field = "theme"
epsilon = 6.0
steps = 3
"""
TOKEN = "a token for the tests"
DEVICES = 24
STEPS = range(7, 11)
SHELF = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    QUESTIONS["distinct"] = DistinctQuestion
    yield
    del QUESTIONS["distinct"]


def test_without_it_the_kind_is_refused_and_devices_do_not_mind() -> None:
    document = seal(load_collection(TEXT).spec(), KEYS.private)
    del QUESTIONS["distinct"]
    try:
        with pytest.raises(InvalidValue, match="kind: got 'distinct'"):
            load_collection(TEXT)
        with pytest.raises(InvalidValue, match="kind: got 'distinct'"):
            open_collection(document, KEYS.public)
        device = open_on_device(document, KEYS.public)
        assert device.terms["in-use"].fields == ("theme",)
        assert device.encode("theme", "sepia") == 2
    finally:
        QUESTIONS["distinct"] = DistinctQuestion


def test_it_is_checked_planned_and_promised(tmp_path: Path) -> None:
    collection = load_collection(TEXT)
    assert [(row.kind, row.unit, row.errors[1000]) for row in forecast(collection)] == [
        ("distinct, 3 steps", "values in use", None)
    ]
    assert "questions.in-use.steps" in {finding.where for finding in check(collection)}
    assert "in-use. Of theme: how many different values are in use? One report every hour." in promise(collection)
    path = tmp_path / "survey.toml"
    path.write_text(TEXT)
    for name in ("check", "plan"):
        done = CliRunner().invoke(command, [name, str(path), "--json"])
        assert done.exit_code == 0, done.output
        said = json.loads(done.stdout)
        assert "not bounded here: a number of values is no mean" in said["poisoning"]["in-use"]["text"]
    wrong = TEXT.replace("steps = 3", "steps = 0"), TEXT.replace("steps = 3", "stebs = 3")
    for text, key in zip(wrong, ("steps", "stebs"), strict=True):
        with pytest.raises(InvalidValue) as refused:
            load_collection(text)
        assert refused.value.field == f"questions.in-use.{key}"


class Twins:
    """Two collectors that hear the same; the first is stopped and started after every step."""

    def __init__(self, collection: Collection, clock: ManualClock, folder: Path) -> None:
        self.collection, self.clock, self.folder = collection, clock, folder
        self.steady = self._open("steady")
        self.restarted = self._open("restarted")

    def _open(self, name: str) -> InProcess:
        collection = read_collection(json.loads(json.dumps(self.collection.spec())))
        return InProcess(collection, self.clock, self.folder / f"{name}.db")

    def tick(self) -> None:
        self.steady.collector.tick()
        self.restarted.collector.tick()

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        twin = self.restarted.request(method, path, headers, body) if body is not None else None
        response = self.steady.request(method, path, headers, body)
        assert twin is None or json.loads(twin.body) == json.loads(response.body)
        return response


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=SHELF) as name:  # 24 ledgers that are synced to a disk would take a minute
        yield Path(name)


def test_it_is_answered_released_and_shown(folder: Path) -> None:
    """24 devices have three of five values, which are counted; their randomness is seeded.

    At epsilon 6 a report names a certain wrong value once in 400 times, and two such among 72 reports would count as a
    fourth value: for other seeds a chance of 3% a release.
    """
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
            client.record("theme", ("light", "dark", "sepia")[number % 3])
            assert client.tick() == 1
            assert client.upload() == 1
        clock.set(collection.opens(step) + 0.9 * collection.step_seconds)
        twins.restarted.restart()
    clock.set(collection.opens(STEPS[-1] + 1) + collection.lateness_seconds + 1)
    twins.tick()
    steady, restarted = (
        collector.releases("survey", "in-use", first=0, last=99, most=99)
        for collector in (twins.steady.collector, twins.restarted.collector)
    )
    assert [(row.step, row.payload) for row in steady] == [(row.step, row.payload) for row in restarted]
    assert [json.loads(row.payload)["n"] for row in restarted] == [24, 48, 72, 72]
    assert [json.loads(row.payload)["value"] for row in restarted][-2:] == [[3.0]] * 2
    for client in devices:
        assert client._current.collection is not None
        assert not client._current.collection.knows_kinds
        client.close()
    _shown(twins.restarted.collector)
    for collector in (twins.steady.collector, twins.restarted.collector):
        collector.store.close()


def _shown(collector: Any) -> None:
    """By the API, and on every page."""
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

    def get(path: str) -> httpx.Response:
        return asyncio.run(fetch(path))

    found = get("/v1/collections/survey/questions/in-use/releases").json()
    latest = found["releases"][-1]
    assert (latest["labels"], latest["value"], latest["kind"]) == (["values in use"], [3.0], "quantity")
    assert (found["shape"]["form"], found["shape"]["high"]) == ("mean", 5.0)
    page = get("/results/survey/in-use").text
    assert "On average <strong>3" in page
    assert "on a range from 0 to 5" in page
    assert "how many different values" in get("/privacy/survey").text
    assert "distinct, 3 steps" in get("/collections/survey").text
