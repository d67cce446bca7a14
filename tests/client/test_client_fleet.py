"""Two hundred devices and a server over HTTP: the intervals of the releases cover the truth."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hubbub.collection import ManualClock
from tests.client.device import begin, device, seeded
from tests.client.local_server import Listening, LocalServer, survey
from tests.shared.small_collections import THEME, collection_text

TEXT = collection_text(
    privacy={"user": 60.0, "minimum_batch": 20},
    fields={
        "theme": THEME,
        "load": {"kind": "numeric", "low": 0.0, "high": 10.0, "cells": 10},
        "home": {"kind": "ordinal", "size": 3},
    },
    questions={
        "popular": {"kind": "histogram", "field": "theme", "epsilon": 3.0},
        "busy": {"kind": "mean", "field": "load", "epsilon": 3.0},
        "page": {"kind": "memo", "field": "home", "epsilon": 3.0, "permanent": 5.0},
        "watched": {"kind": "stream", "field": "theme", "epsilon": 6.0, "method": "LPU", "w": 2},
    },
)
DEVICES = 200
STEPS = (7,)


def run_fleet(
    folder: Path, *, seed: int = 1, devices: int = DEVICES, forgetful: bool = False
) -> tuple[LocalServer, dict[str, np.ndarray]]:
    server, clock = LocalServer(survey(TEXT)), ManualClock()
    numbers = np.arange(devices)
    theme = np.where(numbers % 10 < 7, "dark", "light")
    load, home = numbers % 9 / 2.0, numbers % 4 % 3
    with Listening(server) as url:

        def live(number: int) -> None:
            # A device opens its folder, answers and goes: nothing is kept but what is on the disk.
            with device(folder / str(number), url, clock, rng=seeded(f"{seed} {clock.now()} {number}")) as client:
                if not forgetful:
                    client.record("theme", str(theme[number]))
                    client.record("load", float(load[number]))
                    client.record("home", int(home[number]))
                client.tick()
                client.upload()

        for step in STEPS:
            begin(server, clock, step)
            with ThreadPoolExecutor(4) as several:
                list(several.map(live, range(devices)))
            server.end()
    truth = {
        "popular": np.array([np.mean(theme == "light"), np.mean(theme == "dark"), 0.0]),
        "busy": np.array([load.mean()]),
        "page": np.append(np.bincount(home, minlength=3) / devices, 0.0),
    }
    return server, {**truth, "watched": truth["popular"]}


def misses(server: LocalServer, truth: dict[str, np.ndarray]) -> list[str]:
    """The questions whose intervals do not hold the truth; chance does that to one in 100,000 of these numbers."""
    missed = []
    for name, releases in server.releases.items():
        for release in releases:
            low, high = release.estimate.interval(0.99999)
            if not np.all((low <= truth[name]) & (truth[name] <= high)):
                missed.append(name)
    return missed


def test_a_fleet_is_estimated_within_its_intervals(folder: Path) -> None:
    # 11 numbers at level 0.99999: a failure probability of 2e-4, fixed by the seeds.
    server, truth = run_fleet(folder)
    assert misses(server, truth) == []
    assert {name: len(releases) for name, releases in server.releases.items()} == dict.fromkeys(truth, len(STEPS))
    for name in ("popular", "busy", "page"):
        assert [release.n for release in server.releases[name]] == [DEVICES] * len(STEPS)
    # The stream asks one half of the devices: 65 to 135 of 200, but once in 10^6.
    streamed = server.tally["accepted"] - 3 * DEVICES
    assert 65 <= streamed <= 135
    assert set(server.tally) == {"accepted"}
    assert {len(body) for body in server.bodies} == {server.collection.frame_bytes}


def test_a_fleet_that_forgets_what_it_recorded_is_noticed(folder: Path) -> None:
    server, truth = run_fleet(folder, devices=100, forgetful=True)
    assert set(misses(server, truth)) >= {"popular", "busy", "page"}


@pytest.mark.slow
def test_fleets_of_many_seeds(folder: Path) -> None:
    for number in range(5):
        server, truth = run_fleet(folder / f"fleet {number}", seed=2 + number)
        assert misses(server, truth) == []
