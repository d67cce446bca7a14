"""A mechanism that hides nothing: a report is the value, and a cell counts how often it came. For tests alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub import Categorical, Estimate, Random, Reports, Sketch
from hubbub.collection import Collection
from hubbub.collection.names import AnswerName
from hubbub.ledger.promise import Budget
from hubbub.mechanisms.base import ColumnSpec, Mechanism
from hubbub.protocols.ask import EVERYONE, Arc, Ask
from hubbub.protocols.driver import MAIN, Protocol, Release
from hubbub.protocols.memory import Memory
from hubbub.questions import Question
from hubbub.service.ingest.frames import Frame
from hubbub.wire.batches import Batch
from hubbub.wire.upload import Entry


@dataclass(frozen=True, kw_only=True)
class Exact(Mechanism):
    """Reports its value, an integer below `size`."""

    size: int

    def _resolve(self) -> None:
        self._integer("size", 1, 1 << 20)

    def ratio(self) -> Fraction:
        return Fraction(2)  # a lie: it is not for people

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (ColumnSpec("private", "value", "u4", below=self.size),)

    def encode(self, values: Any) -> NDArray[Any]:
        return np.asarray(values, dtype=np.int64)

    def example_values(self, most: int) -> list[Any]:
        return list(range(min(most, self.size)))

    def _randomize(self, codes: NDArray[Any], rng: Random) -> dict[str, NDArray[Any]]:
        return {"value": codes}

    def prob(self, reports: Reports, values: Any) -> NDArray[np.object_]:
        raise NotImplementedError

    def log_prob(self, reports: Reports, values: Any) -> NDArray[np.float64]:
        raise NotImplementedError

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (self.size,)

    def _fold(self, reports: Reports) -> NDArray[np.int64]:
        return np.bincount(reports.private["value"], minlength=self.size).astype(np.int64)

    def _estimate(self, sketch: Sketch, candidates: Any = None) -> Estimate:
        return Estimate(sketch.counts / sketch.n, np.zeros(self.size), sketch.n)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, size=4)


SIZE = 128
EXACT = Exact(epsilon=1.0, size=SIZE)


@dataclass
class _Place:
    step: int = 1


@dataclass(frozen=True, kw_only=True)
class ExactCollection(Collection):
    """A collection whose one question is asked by `Exact`, with a second ask in every other step if it is adaptive."""

    def protocol(self, question: str, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        place = (memory or Memory()).keep("place", _Place())
        while True:
            step = place.step
            first = yield Ask(mechanism=EXACT, step=step, standing=True)
            assert first is not None
            total = first
            if self.terms[question].rounds > 1 and step % 2:
                second = yield Ask(mechanism=EXACT, step=step, cohort=Arc(0, 1 << 31))
                assert second is not None
                total = total + second
            estimate = Estimate(total.counts / max(total.n, 1), np.zeros(SIZE), total.n)
            place.step += 1
            yield Release(step=step, estimates={MAIN: estimate}, published=total.n > 0, spent=1.0, n=float(total.n))


def exact_collection(
    *, adaptive: bool = False, step: int = 100, lateness: int = 10, version: int = 1, keep: bool = False
) -> Collection:
    question = Question.make(kind="histogram", field="theme", epsilon=1.0, keep_reports=keep)
    if adaptive:
        question = Question.make(kind="stream", field="theme", epsilon=1.0, method="LPA", w=2)
    return ExactCollection(
        name="exact",
        version=version,
        title="For tests",
        fields={"theme": Categorical(["light", "dark"])},
        questions={"all": question},
        budget=Budget.of(event=1.0),
        step_seconds=step,
        lateness_seconds=lateness,
        minimum_batch=1,
    )


def exact_reports(mechanism: Mechanism, values: list[int]) -> Reports:
    return mechanism.randomize(values, Random(seed=0))


def name_of(ask: Ask) -> AnswerName:
    """What the answers to an ask of an `ExactCollection` are called: only a second round asks a part of the devices."""
    return AnswerName("all", run=0, step=ask.step, round=1 if ask.cohort == EVERYONE else 2, part=0)


def batch_frame(collection: Collection, ask: Ask, ids: list[bytes], values: list[int]) -> Frame:
    reports = exact_reports(ask.mechanism, values)
    batch = Batch(collection.name, collection.version, name_of(ask), b"".join(ids), reports.to_bare())
    return Frame(collection.collection_id, batch=batch)


def upload_frame(collection: Collection, ask: Ask, ids: list[bytes], values: list[int]) -> Frame:
    entries = [
        Entry(*name_of(ask), report_id, exact_reports(ask.mechanism, [value]).to_bare())
        for report_id, value in zip(ids, values, strict=True)
    ]
    return Frame(collection.collection_id, entries)
