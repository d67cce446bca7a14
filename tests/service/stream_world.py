"""Streams, and a crowd that changes its mind: the methods that a test of the service sees, and what it answers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hubbub import Random, Reports, Sketch
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import converse
from hubbub.protocols.window import METHODS
from hubbub.protocols.window.division import PopulationDivision
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.open_asks import OpenAsk
from tests.shared.in_process import World, randomized, released, send_reports
from tests.shared.small_collections import THEME, collection_text

# In short, every way of deciding and both of dividing.
SHORT = {name for name, method in METHODS.items() if method.division is PopulationDivision} | {"LBA"}
STREAM_METHODS = [name if name in SHORT else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]


def stream_text(**privacy: Any) -> str:
    """A collection with a stream by the method METHOD."""
    return collection_text(
        "streams",
        "Streams",
        schedule={"step": "100s", "lateness": "10s"},
        privacy={"minimum_batch": 20, **privacy},
        fields={"theme": THEME, "colour": {"kind": "categorical", "names": ["red", "green"]}},
        questions={"trend": {"kind": "stream", "field": "theme", "epsilon": 1.0, "method": "METHOD", "w": 4}},
    )


def changing(ask: Ask) -> tuple[Reports, bytes]:
    """What a crowd answers, and the ids of its reports; the same to the same ask."""
    seed, size = int(ask.ask_id[:12], 16), round(3000 * ask.cohort.share)
    dark = round(size * (0.2 if ask.step % 9 < 5 else 0.7))
    return randomized(ask, [1] * dark + [0] * (size - dark), Random(seed=seed)), Random(seed=seed).bytes(16 * size)


def answer_changing(collector: Collector, open_ask: OpenAsk) -> Sketch:
    """Everyone who is asked answers."""
    reports, ids = changing(open_ask.ask)
    assert send_reports(collector, open_ask, reports, ids).accepted == len(reports)
    return open_ask.ask.mechanism.accumulate(reports)


def assert_as_simulated(world: World, answered: Mapping[str, Sketch], *, at_least: int, batch: int = 20) -> None:
    """Releases from step 10 on are those of the protocol driven by hand with the same answers, by ask; of fewer reports
    than `batch` some are withheld."""
    releases = released(world.collector, "trend")
    assert len(releases) >= at_least

    def answer(ask: Ask) -> Sketch:
        return answered[replace(ask, step=ask.step + 9).ask_id]

    simulated = converse(world.collection.protocol("trend"), answer, steps=len(releases))
    for release, row in zip(simulated, releases, strict=True):
        assert row["step"] == release.step + 9
        assert row["published"] == release.published
        if row["withheld"] is None:
            assert np.allclose(row["value"], release.estimate.value, rtol=0, atol=1e-12)
        else:
            assert release.estimate.n < batch
