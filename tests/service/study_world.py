"""Kinds of questions that are asked in rounds and parts, a study and a stream, and a crowd that answers them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from hubbub import Estimate, Ordinal, Sketch
from hubbub.collection.terms import Family, Frozen, Study, Terms
from hubbub.core.event import units_of
from hubbub.core.reports import Floats, Ints
from hubbub.core.spec import Json
from hubbub.ledger.promise import Budget, Promise, of_question
from hubbub.protocols.ask import CIRCLE, Arc, Ask
from hubbub.protocols.driver import MAIN, Conversation, Count, Protocol, Release, ask_all, ask_count, ask_once
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Frequencies
from hubbub.protocols.views.basic import Among
from hubbub.questions import QUESTIONS, StatisticQuestion
from hubbub.questions.collection import Collection
from hubbub.questions.histogram import shares_read
from hubbub.questions.value_shares import Shares
from hubbub.service.rounds.releases import read_count
from hubbub.service.store.base import EraRow, ReleaseRow
from hubbub.service.store.sql import Store
from tests.shared.in_process import Crowd, World, places_of

START, ROUND, LATENESS = 1000, 100, 10
SIZE = 40
ROUNDS, PARTS = 3, 2
_QUARTER = CIRCLE // 4


def narrowing(size: int, *, epsilon: float, most: int) -> Protocol:
    """Which of `size` values are the `most` common, and their shares.

    A quarter of the people chooses and another tests, in one round, as two parts: the first quarter's estimate names
    4 `most` candidates, and their supports are counted among the reports that were kept of the second, so that none is
    estimated from what it was chosen by. The third quarter is asked about the better half of them, and the last about
    the best `most` by what all before said. So everyone answers once, with all of epsilon. A round that nobody answered
    ends it.
    """
    units = units_of(epsilon)
    whole = Frequencies(size).mechanism(units)
    choosing, testing = (
        Ask(mechanism=whole, step=0, cohort=Arc(part * _QUARTER, _QUARTER), kept=part == 1) for part in range(PARTS)
    )
    chosen, tested = yield from ask_all([choosing, testing])
    reports = chosen.n + tested.n
    if not (chosen.n and tested.n):
        yield _stopped(1, reports)
        return
    codes = _best(whole.estimate(chosen).value, np.arange(size), 4 * most)
    counted = yield from ask_count(Count(testing, tuple(codes.tolist())))
    shares = whole.estimate(whole.support_sketch(codes.tolist(), counted.n, counted.support), codes.tolist())
    estimates = {"shares": shares, "tested": shares}
    weight = shares.value
    for round, left in enumerate((2 * most, most), start=2):
        best = _best(weight, codes, left)
        codes, weight = best, weight[np.searchsorted(codes, best)]
        view = Among(tuple(codes.tolist()))
        oracle = Frequencies(view.size).mechanism(units)
        ask = Ask(mechanism=oracle, step=0, view=view, cohort=Arc(round * _QUARTER, _QUARTER))
        sketch = yield from ask_once(ask)
        reports += sketch.n
        if not sketch.n:
            yield _stopped(round, reports)
            return
        told = _named(oracle.estimate(sketch), codes)
        weight = (weight + told.value) / 2
        estimates["candidates" if round == 2 else "shares"] = told
    yield Release(step=0, estimates=estimates, published=True, spent=1.0, n=float(reports))


def _best(values: Floats, codes: Ints, most: int) -> Ints:
    """The codes with the highest values, ascending; of equal ones the smallest."""
    return np.sort(codes[np.argsort(-values, kind="stable")[:most]])


def _named(estimate: Estimate, codes: Ints) -> Estimate:
    """The shares of the codes, without that of all others."""
    return Estimate(
        estimate.value[:-1], estimate.variance[:-1], estimate.n, bias=estimate.bias, labels=tuple(map(str, codes))
    )


def _stopped(round: int, reports: int) -> Release:
    why = f"nobody answered in round {round}"
    return Release(step=0, estimates={}, published=False, spent=1.0, n=float(reports), stopped=why)


class _SharesQuestion(StatisticQuestion):
    """Asks for shares, with whatever codes."""

    def statistic(self) -> Shares:
        codes, view = shares_read(self.setting.domain, self.kind, None)
        return Shares(codes, oracle=self.mechanism, view=view)

    def labels(self) -> None:
        return None


@dataclass(frozen=True, kw_only=True)
class CommonQuestion(_SharesQuestion):
    """The most common values, by a study of three rounds."""

    kind: ClassVar[str] = "common"
    frozen: ClassVar[Frozen] = "study"
    most: int = 3
    start: int = START
    round_seconds: int = ROUND
    every: int = 0
    rounds: int = ROUNDS
    """How many are signed, which may be too few."""

    def terms(self) -> Terms:
        units, sizes = units_of(self.epsilon), (self.statistic().size, self.most + 1, 2 * self.most + 1)
        whole, *narrow = (Frequencies(size).mechanism(units) for size in sizes)
        interval = self.every or self.rounds * self.round_seconds
        return Terms(
            fields=self.reads(),
            frozen=self.frozen,
            views=({"kind": "whole"}, {"kind": "among", "codes": {"most": 2 * self.most}}),
            mechanisms=(whole.spec_id,),
            families=tuple(Family(name, (units,)) for name in sorted({type(oracle).__name__ for oracle in narrow})),
            rounds=self.rounds,
            parts=PARTS,
            limit=units,
            promises=(Promise(units, 1, interval, self.start % interval, scope=of_question(self.setting.name)),),
            report_bytes=max(oracle.report_bytes for oracle in (whole, *narrow)),
            study=Study(self.start, self.round_seconds, self.every),
        )

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        return narrowing(self.statistic().size, epsilon=self.epsilon, most=self.most)


@dataclass
class _Place:
    step: int = 1
    best: int = 0


@dataclass(frozen=True, kw_only=True)
class TestedQuestion(_SharesQuestion):
    """At every step, two parts of which one chooses and one tests, and a round about what was chosen: it has no end."""

    kind: ClassVar[str] = "tested"

    def terms(self) -> Terms:
        views: tuple[Mapping[str, Json], ...] = ({"kind": "whole"}, {"kind": "among", "codes": {"most": 2}})
        narrow = Frequencies(3).mechanism(units_of(self.epsilon))
        plain_terms = super().terms()
        mechanisms = tuple(sorted({*plain_terms.mechanisms, narrow.spec_id}))
        return replace(plain_terms, views=views, mechanisms=mechanisms, rounds=2, parts=2, limit=2 * plain_terms.limit)

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        oracle, place = self.mechanism_for(), (memory or Memory()).keep("place", _Place())
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


class WordCrowd(Crowd):
    """People with a word each, a number; every third has 5, every sixth 9."""

    def __init__(self, n: int = 1200) -> None:
        rng = np.random.default_rng(7)
        places, kinds = places_of(n, rng), np.arange(n) % 6
        super().__init__(places, np.where(kinds < 2, 5, np.where(kinds == 2, 9, rng.integers(0, SIZE, n))))


def run_rounds(world: World, crowd: Crowd, *, rounds: int = ROUNDS, silent: int = 0, restarts: bool = False) -> None:
    """Live through the rounds of a study, all but one answered; the collector may restart before all that happens."""
    begins = world.clock.now()
    for number in range(1, rounds + 1):
        if number != silent:
            assert crowd.send_all((world.begin() if restarts else world.at(world.clock.now())).collector) > 0
        for late in (0, LATENESS):  # closed, and waits for the late
            world.clock.set(begins + ROUND * number + late)
            (world.begin() if restarts else world).collector.tick()


def stops(rows: list[ReleaseRow]) -> list[tuple[int, str | None]]:
    """Why each run was stopped, if it was."""
    return [(row.step, json.loads(row.payload).get("stopped")) for row in rows]


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
