"""A study of itemsets, and people with baskets who answer it: the same reports to the same ask, whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from hubbub import Ordinal, Random, Reports, Sketch
from hubbub.backends import LOCAL
from hubbub.collection import Collection, Keys
from hubbub.core.domain import Sets
from hubbub.core.domain.sets import ItemSets
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Release, converse
from hubbub.questions import Question
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import Frame
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.wire.batches import Batch

KEYS = Keys.new()
START, ROUND, LATENESS = 86_400, 100, 10
ITEMS = 60


def itemsets_collection(
    domain: Sets = Sets(Ordinal(ITEMS), most=12),
    overrides: Mapping[str, str] = MappingProxyType({}),
    **keys: Any,
) -> Collection:
    row_fields = {"field": "basket", "epsilon": 4.0, "k": 8, "start": "1970-01-02T00:00Z", "round": f"{ROUND}s", **keys}
    return Collection(
        name="baskets",
        version=1,
        title="For tests",
        fields={"basket": domain},
        questions={"together": Question.make("itemsets", **row_fields)},
        budget=Budget.of(event=20.0),
        step_seconds=3600,
        lateness_seconds=LATENESS,
        minimum_batch=20,
        overrides=overrides,
    )


def baskets(n: int) -> ItemSets:
    """Half hold 5, a third of those 9 too; a fifth 20 and 21; and up to five others."""
    rng = np.random.default_rng(11)
    holds = rng.random((n, ITEMS)) < 0.04
    holds[:, 5] = rng.random(n) < 0.5
    holds[:, 9] = holds[:, 5] & (rng.random(n) < 0.33)
    holds[:, 20] = holds[:, 21] = rng.random(n) < 0.2
    holds[holds.sum(axis=1) > 12] = False
    return ItemSets(np.concatenate([[0], np.cumsum(holds.sum(axis=1))]), np.nonzero(holds)[1], domain=ITEMS)


class Shoppers:
    """People with places on the circle and a basket each."""

    def __init__(self, n: int, held: ItemSets | None = None) -> None:
        self.places = np.random.default_rng(7).integers(0, 1 << 32, n, dtype=np.uint64)
        self.baskets = baskets(n) if held is None else held

    def reports(self, ask: Ask) -> tuple[Reports, Random]:
        rng = Random(seed=int(ask.ask_id[:12], 16))
        answering = self.baskets[ask.cohort.holds(self.places)]
        return ask.mechanism.randomize(ask.view(answering), rng), rng  # type: ignore[attr-defined]

    def answer(self, ask: Ask) -> Sketch:
        return LOCAL.fold([self.reports(ask)[0]], ask.mechanism)

    def send(self, collector: Collector, opened: OpenAsk) -> int:
        """Answer an ask of a collector; how many reports were counted."""
        (collection,) = collector.collections.values()
        reports, rng = self.reports(opened.ask)
        ids = rng.bytes(16 * len(reports))
        batch = Batch(collection.name, collection.version, opened.name, ids, reports.to_bare())
        return collector.ingest([Frame(collection.collection_id, batch=batch)])[0].accepted

    def send_all(self, collector: Collector) -> int:
        (collection,) = collector.collections.values()
        return sum(
            self.send(collector, opened)
            for opened in collector.board.open(collection.collection_id, collector.clock.now())
        )


def simulated(collection: Collection, people: Shoppers, run: int = 0) -> Release:
    """What a simulation of the same people releases."""
    terms = collection.terms["together"]
    protocol = collection.protocol("together", first=run)
    (release,) = converse(protocol, people.answer, rounds=terms.rounds, parts=terms.parts)
    return release
