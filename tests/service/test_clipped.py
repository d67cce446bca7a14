"""Means whose clipping range follows the numbers: devices admit every ask, and a collector goes on from anywhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from hubbub import Numeric, Random
from hubbub.collection import Collection, ManualClock
from hubbub.collection.admits import admits
from hubbub.collection.terms import Family, Terms
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Protocol, converse
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Means
from hubbub.protocols.views.basic import Clipped
from hubbub.protocols.window.clipping import clipped_asks, clipped_means
from hubbub.questions import QUESTIONS, Setting, StatisticQuestion
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import Frame
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import Batch
from tests.service.study_world import KEYS

STEP, LATENESS, STEPS = 300, 10, 14


@dataclass(frozen=True, kw_only=True)
class ClippedQuestion(StatisticQuestion):
    """The mean of a number with a long tail."""

    kind: ClassVar[str] = "clipped"
    method: str
    w: int = 4

    def statistic(self, setting: Setting) -> Means:
        return Means(0.0, self._most(setting))

    def _most(self, setting: Setting) -> float:
        assert isinstance(setting.domain, Numeric)
        return setting.domain.high

    def _given(self, setting: Setting) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "w": self.w, "most": self._most(setting), "cells": 12}

    def terms(self, setting: Setting) -> Terms:
        family = clipped_asks(self.method, **self._given(setting))
        name, units = family.means
        return Terms(
            fields=self.reads(),
            views=family.views,
            mechanisms=family.mechanisms,
            families=(Family(name, units),),
            rounds=family.rounds,
            limit=self.cost(setting).each,
            promises=(self.promise(setting, self.w),),
            report_bytes=64,
        )

    def protocol(self, setting: Setting, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        return clipped_means(self.method, **self._given(setting), memory=memory)

    def labels(self, setting: Setting) -> None:
        return None


QUESTIONS["clipped"] = ClippedQuestion


def collection(method: str) -> Collection:
    return Collection(
        name="clipped",
        title="For tests",
        fields={"spent": Numeric(0.0, 1000.0, cells=8)},
        questions={"mean": ClippedQuestion(field="spent", epsilon=4.0, method=method)},
        budget=Budget.of(window=(4.0, 4)),
        step_seconds=STEP,
        lateness_seconds=LATENESS,
        minimum_batch=1,
    )


def reports(ask: Ask, step: int) -> Any:
    places = np.random.default_rng(3).integers(0, 1 << 32, 4000, dtype=np.uint64)
    numbers = np.random.default_rng(4).exponential(5.0 if step < 7 else 90.0, 4000)
    rng = Random(seed=ask.ask_id)
    return ask.mechanism.randomize(ask.view(numbers[ask.cohort.holds(places)]), rng), rng


@pytest.mark.parametrize("method", ["LBU", "LPU", "LBA"])
def test_every_ask_is_admitted_and_a_collector_says_what_a_simulation_says(method: str):
    served, store, clock = collection(method), SqliteStore(":memory:"), ManualClock(0.0)
    terms, asks = served.terms["mean"], []
    for step in range(STEPS):
        for round in range(terms.rounds):
            clock.set(step * STEP + round * STEP / terms.rounds + LATENESS + 1)
            collector = Collector([served], store, clock=clock, keys=KEYS, rng=Random(seed=1))  # begun again every time
            for opened in collector.board.open(served.collection_id, clock.now()):
                assert admits(terms, opened.ask, round=opened.name.round, minimum_arc=served.minimum_arc) is None
                asks.append(opened.ask)
                answers, rng = reports(opened.ask, step)
                batch = Batch(served.name, 1, opened.name, rng.bytes(16 * len(answers)), answers.to_bare())
                collector.ingest([Frame(served.collection_id, batch=batch)])
    clock.advance(STEP)
    collector.tick()
    rows = collector.releases("clipped", "mean", first=0, last=STEPS - 2, most=99)
    assert len(rows) == STEPS - 1
    assert len({ask.view.high for ask in asks if isinstance(ask.view, Clipped)}) > 1, "the range never moved"

    def answer(ask: Ask) -> Any:
        placed = next(known for known in asks if _same(known, ask))
        return ask.mechanism.accumulate(reports(placed, ask.step - 1)[0])

    for row, release in zip(rows, converse(served.protocol("mean"), answer, steps=len(rows)), strict=True):
        assert json.loads(row.payload)["value"] == release.estimate.value.tolist()


def _same(stored: Ask, simulated: Ask) -> bool:
    spec = {**simulated.spec(), "step": simulated.step - 1}
    return stored.spec() == spec
