"""A model is trained exactly once: wherever the collector dies, the models are those of a life without a crash."""

import json
from typing import Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.collection import ManualClock
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.protocols.views.update import Update, model_weights
from hubbub.service.collector.collector import Collector
from tests.client.test_client_models import LATENESS, ROUND, ROUNDS, START, TARGET, collection
from tests.service.once_world import Crash, Crashing
from tests.shared.in_process import KEYS, Crowd, places_of

PEOPLE = 400
STATEMENTS = 60
"""The process dies before each of the first of these statements, in a life of its own."""


class Learners(Crowd):
    """People who all want the model to be the target."""

    def reports(self, ask: Ask) -> tuple[Reports, Random]:
        assert isinstance(ask.view, Update)
        assert isinstance(ask.mechanism, Mechanism)
        assert ask.view.content is not None
        rng = Random(seed=int(ask.ask_id[:12], 16))
        way = TARGET - model_weights(ask.view.content)
        rows = np.tile(way, (int(ask.cohort.holds(self.places).sum()), 1))
        return ask.mechanism.randomize(ask.view.look(rows, rng), rng), rng


def life(fuse: int | None) -> tuple[list[Any], int]:
    """What is released if the process dies at a statement, and begins again; and how many times it died."""
    store, clock, crowd, deaths = Crashing(), ManualClock(START + 1.0), Learners(places_of(PEOPLE), None), 0

    def begun() -> Collector:
        return Collector([collection()], store, clock=clock, keys=KEYS, rng=Random(seed=1))

    collector, store.fuse = begun(), fuse
    for round in range(1, ROUNDS + 1):
        for deed in ("send", "close"):
            if deed == "close":
                clock.set(START + ROUND * round + LATENESS + 1.0)
            while True:
                try:
                    crowd.send_all(collector) if deed == "send" else collector.tick()
                    break
                except Crash:
                    deaths, collector = deaths + 1, begun()
    rows = store.releases(collection().collection_id, "model", 0, 9, 9)
    accepted = collector.counts()[collection().collection_id, "accepted"]
    assert accepted == PEOPLE, "lost, or counted twice"
    return [json.loads(row.payload) for row in rows], deaths


@pytest.fixture(scope="module")
def undisturbed() -> list[Any]:
    return life(None)[0]


def test_a_life_without_a_crash_ends_near_the_target(undisturbed: list[Any]) -> None:
    assert len(undisturbed) == ROUNDS
    np.testing.assert_allclose(undisturbed[-1]["estimates"]["model"]["value"], TARGET, atol=0.5)


def test_wherever_it_dies_the_models_are_the_same(undisturbed: list[Any]) -> None:
    deaths = 0
    for fuse in range(STATEMENTS):
        releases, died = life(fuse)
        deaths += died
        assert releases == undisturbed, f"another model after a crash at statement {fuse}"
    assert deaths > STATEMENTS / 2
