"""A kind of question that is a study, and a crowd that answers it: the same reports to the same ask, whoever asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from hubbub import Estimate, Ordinal, Random, Reports, Sketch
from hubbub.backends import LOCAL
from hubbub.collection import Collection, Keys
from hubbub.collection.terms import Family, Frozen, Study, Terms
from hubbub.core.event import units_of
from hubbub.ledger.promise import Budget, Promise, of_question
from hubbub.protocols.ask import Arc, Ask
from hubbub.protocols.driver import (
    MAIN,
    Conversation,
    Count,
    CountResult,
    Protocol,
    Release,
    ask_all,
    ask_count,
    ask_once,
    converse,
)
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Frequencies
from hubbub.protocols.views.basic import Among
from hubbub.questions import QUESTIONS, Setting, StatisticQuestion
from hubbub.questions.shares import Shares, shares_read
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import Frame
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.rounds.counts import read_count
from hubbub.service.rounds.releases import release_row
from hubbub.service.store.base import EraRow, ReleaseRow
from hubbub.service.store.sql import Store
from hubbub.wire.batches import Batch
from tests.service.narrowing import PARTS, ROUNDS, narrowing

KEYS = Keys.new()
START, ROUND, LATENESS = 1000, 100, 10
SIZE = 40


@dataclass(frozen=True, kw_only=True)
class CommonQuestion(StatisticQuestion):
    """The most common values, by a study of three rounds."""

    kind: ClassVar[str] = "common"
    frozen: ClassVar[Frozen] = "study"
    most: int = 3
    start: int = START
    round_seconds: int = ROUND
    every: int = 0
    rounds: int = ROUNDS
    """How many are signed, which may be too few."""

    def statistic(self, setting: Setting) -> Shares:
        codes, view = shares_read(setting.domain, self.kind, None)
        return Shares(codes, oracle=self.mechanism, view=view)

    def terms(self, setting: Setting) -> Terms:
        units, whole = units_of(self.epsilon), self._whole(setting)
        narrow = [Frequencies(size + 1).mechanism(units) for size in (self.most, 2 * self.most)]
        length = self.rounds * self.round_seconds
        interval = self.every or length
        return Terms(
            fields=self.reads(),
            frozen=self.frozen,
            views=({"kind": "whole"}, {"kind": "among", "codes": {"most": 2 * self.most}}),
            mechanisms=(whole.spec_id,),
            families=tuple(
                Family(name, (units,)) for name in sorted({type(part_mechanism).__name__ for part_mechanism in narrow})
            ),
            rounds=self.rounds,
            parts=PARTS,
            limit=units,
            promises=(Promise(units, 1, interval, self.start % interval, scope=of_question(setting.name)),),
            report_bytes=max(part_mechanism.report_bytes for part_mechanism in (whole, *narrow)),
            study=Study(self.start, self.round_seconds, self.every),
        )

    def _whole(self, setting: Setting) -> Any:
        return Frequencies(self.statistic(setting).size).mechanism(units_of(self.epsilon))

    def protocol(self, setting: Setting, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        return narrowing(self.statistic(setting).size, epsilon=self.epsilon, most=self.most)

    def labels(self, setting: Setting) -> None:
        return None


@dataclass
class _Place:
    step: int = 1
    best: int = 0


@dataclass(frozen=True, kw_only=True)
class TestedQuestion(StatisticQuestion):
    """At every step, two parts of which one chooses and one tests, and a round about what was chosen: it has no end."""

    kind: ClassVar[str] = "tested"

    def statistic(self, setting: Setting) -> Shares:
        codes, view = shares_read(setting.domain, self.kind, None)
        return Shares(codes, oracle=self.mechanism, view=view)

    def terms(self, setting: Setting) -> Terms:
        views = ({"kind": "whole"}, {"kind": "among", "codes": {"most": 2}})
        narrow = Frequencies(3).mechanism(units_of(self.epsilon))
        plain_terms = super().terms(setting)
        mechanisms = tuple(sorted({*plain_terms.mechanisms, narrow.spec_id}))
        return replace(plain_terms, views=views, mechanisms=mechanisms, rounds=2, parts=2, limit=2 * plain_terms.limit)

    def protocol(self, setting: Setting, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        oracle, place = self.mechanism_for(setting), (memory or Memory()).keep("place", _Place())
        half = 1 << 31
        while True:
            step = place.step
            choosing, testing = (
                Ask(mechanism=oracle, step=step, cohort=Arc(part * half, half), kept=part == 1) for part in (0, 1)
            )
            chosen, tested = yield from ask_all([choosing, testing])
            best = int(np.argmax(chosen.counts))
            counted = yield from ask_count(Count(testing, (best,)))
            view = Among(tuple(sorted({best, place.best})))
            narrow = Frequencies(view.size).mechanism(units_of(self.epsilon))
            sketch = yield from ask_once(Ask(mechanism=narrow, step=step, view=view))
            place.step, place.best = step + 1, best
            told = np.array([best, counted.n, counted.support[0], tested.n, sketch.n], dtype=np.float64)
            estimate = Estimate(told, np.ones(5), chosen.n + sketch.n)
            yield Release(step=step, estimates={MAIN: estimate}, published=True, spent=1.0, n=float(sketch.n))

    def labels(self, setting: Setting) -> None:
        return None


QUESTIONS["common"] = CommonQuestion
QUESTIONS["tested"] = TestedQuestion


def study_collection(
    *, version: int = 1, retention_days: int = 1, stream: bool = False, step: int = 3600, **keys: Any
) -> Collection:
    questions: dict[str, Any] = {"common": CommonQuestion(field="word", epsilon=3.0, **keys)}
    if stream:
        questions["tested"] = TestedQuestion(field="word", epsilon=2.0)
    return Collection(
        name="study",
        version=version,
        title="For tests",
        fields={"word": Ordinal(SIZE)},
        questions=questions,
        budget=Budget.of(event=9.0),
        step_seconds=step,
        lateness_seconds=LATENESS,
        minimum_batch=20,
        retention_days=retention_days,
    )


class Crowd:
    """Some people with places on the circle and a value each; every third has the value 5, every sixth 9."""

    def __init__(self, n: int = 1200) -> None:
        rng = np.random.default_rng(7)
        self.places = rng.integers(0, 1 << 32, n, dtype=np.uint64)
        kinds = np.arange(n) % 6
        self.values = np.where(kinds < 2, 5, np.where(kinds == 2, 9, rng.integers(0, SIZE, n)))
        self.kept: dict[str, Reports] = {}

    def reports(self, ask: Ask) -> tuple[Reports, Random]:
        rng = Random(seed=int(ask.ask_id[:12], 16))
        values = self.values[ask.cohort.holds(self.places)]
        return ask.mechanism.randomize(ask.view(values), rng), rng

    def answer(self, ask: Ask) -> Sketch:
        self.kept[ask.ask_id], _ = self.reports(ask)
        return LOCAL.fold([self.kept[ask.ask_id]], ask.mechanism)

    def count(self, count: Count) -> CountResult:
        sketch = LOCAL.support([self.kept[count.ask.ask_id]], count.oracle, count.candidates)
        return CountResult(sketch.n, sketch.counts)

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


def simulated(collection: Collection, crowd: Crowd, question: str = "common") -> list[Release]:
    """What a simulation of the same people releases."""
    terms = collection.terms[question]
    protocol = collection.protocol(question)
    return list(converse(protocol, crowd.answer, count=crowd.count, rounds=terms.rounds, parts=terms.parts))


def stored_as(collection: Collection, release: Release, *, run: int = 0, number: int = 0) -> ReleaseRow:
    fields = {"collection": collection.collection_id, "question": "common", "time": 0.0, "minimum_batch": 20}
    return release_row(replace(release, step=run), **fields, number=number)


def retold(collection: Collection, store: Store, question: str = "common") -> Release:
    """What a simulation says that hears, of every round and count, what a store has of it."""
    era, terms = EraRow(collection.collection_id, question, 0), collection.terms[question]
    rounds = [list(asks) for _, asks in groupby(store.asks(era), lambda ask: ask.round)]
    assert [len(parts) for parts in rounds] == [2, 1, 1]
    conversation = Conversation(collection.protocol(question), rounds=terms.rounds, parts=terms.parts)
    while not isinstance(message := conversation.message, Release):
        if isinstance(message, Count):
            (counted,) = store.counted(era, 0)
            conversation.reply_count(read_count(counted))
        else:
            conversation.reply_all([Sketch.from_bytes(ask.sketch) for ask in rounds.pop(0)])
    return message
