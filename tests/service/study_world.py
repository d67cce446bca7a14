"""A kind of question that is a study, and a crowd that answers it: the same reports to the same ask, whoever asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hubbub import Ordinal, Random, Reports, Sketch
from hubbub.backends import LOCAL
from hubbub.collection import Collection, Keys
from hubbub.collection.terms import Family, Frozen, Study, Terms
from hubbub.collection.wire import Batch
from hubbub.core.event import units_of
from hubbub.privacy.budget import Budget
from hubbub.privacy.promise import Promise, of_question
from hubbub.protocols.ask import Ask, Count, Counted, Release
from hubbub.protocols.driver import Protocol, converse
from hubbub.protocols.memory import Memory
from hubbub.protocols.narrowing import PARTS, ROUNDS, narrowing
from hubbub.protocols.statistic import Frequencies
from hubbub.questions import QUESTIONS, Setting, StatisticQuestion
from hubbub.questions.shares import Shares, shares_read
from hubbub.service.collector import Collector
from hubbub.service.frames import Frame
from hubbub.service.open_asks import OpenAsk
from hubbub.service.releases import row_of
from hubbub.service.store.base import ReleaseRow

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
            families=tuple(Family(name, (units,)) for name in sorted({type(each).__name__ for each in narrow})),
            rounds=self.rounds,
            parts=PARTS,
            limit=units,
            promises=(Promise(units, 1, interval, self.start % interval, scope=of_question(setting.name)),),
            report_bytes=max(each.report_bytes for each in (whole, *narrow)),
            study=Study(self.start, self.round_seconds, self.every),
        )

    def _whole(self, setting: Setting) -> Any:
        return Frequencies(self.statistic(setting).size).mechanism(units_of(self.epsilon))

    def protocol(self, setting: Setting, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        return narrowing(self.statistic(setting).size, epsilon=self.epsilon, most=self.most)

    def labels(self, setting: Setting) -> None:
        return None


QUESTIONS["common"] = CommonQuestion


def study_collection(*, version: int = 1, retention_days: int = 1, **keys: Any) -> Collection:
    return Collection(
        name="study",
        version=version,
        title="For tests",
        fields={"word": Ordinal(SIZE)},
        questions={"common": CommonQuestion(field="word", epsilon=3.0, **keys)},
        budget=Budget.of(event=3.0),
        step_seconds=3600,
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

    def count(self, count: Count) -> Counted:
        sketch = LOCAL.support([self.kept[count.of.ask_id]], count.oracle, count.candidates)
        return Counted(sketch.n, sketch.counts)

    def send(self, one: Collector, opened: OpenAsk) -> int:
        """Answer an ask of a collector; how many reports were counted."""
        (collection,) = one.collections.values()
        reports, rng = self.reports(opened.ask)
        ids = rng.bytes(16 * len(reports))
        batch = Batch(collection.name, collection.version, opened.name, ids, reports.to_bare())
        return one.ingest([Frame(collection.collection_id, batch=batch)])[0].accepted

    def send_all(self, one: Collector) -> int:
        (collection,) = one.collections.values()
        return sum(self.send(one, opened) for opened in one.board.open(collection.collection_id, one.clock.now()))


def simulated(collection: Collection, crowd: Crowd, question: str = "common") -> list[Release]:
    """What a simulation of the same people releases."""
    terms = collection.terms[question]
    protocol = collection.protocol(question)
    return list(converse(protocol, crowd.answer, count=crowd.count, rounds=terms.rounds, parts=terms.parts))


def stored_as(collection: Collection, release: Release, *, run: int = 0, number: int = 0) -> ReleaseRow:
    from dataclasses import replace

    given = {"collection": collection.collection_id, "question": "common", "time": 0.0, "minimum_batch": 20}
    return row_of(replace(release, step=run), **given, number=number)
