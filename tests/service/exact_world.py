"""A mechanism that hides nothing: a report is the value, and a cell counts how often it came. For tests alone."""

from dataclasses import dataclass

import numpy as np

from hubbub import GRR, Categorical, Estimate, Random, Reports
from hubbub.collection.names import AnswerName
from hubbub.core.reports import Array
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import EVERYONE, Arc, Ask
from hubbub.protocols.driver import MAIN, Protocol, Release, ask_once
from hubbub.protocols.memory import Memory
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.service.ingest.frames import Frame
from hubbub.wire.batches import Batch
from hubbub.wire.upload import Entry


@dataclass(frozen=True, kw_only=True)
class Exact(GRR):
    """Reports its value, an integer below its size."""

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        return {"value": codes.astype(self.columns[0].dtype)}


SIZE = 128
EXACT = Exact(epsilon=1.0, domain=SIZE)


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
            total = yield from ask_once(Ask(mechanism=EXACT, step=step, standing=True))
            if self.terms[question].rounds > 1 and step % 2:
                total += yield from ask_once(Ask(mechanism=EXACT, step=step, cohort=Arc(0, 1 << 31)))
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


def exact_reports(values: list[int]) -> Reports:
    return EXACT.randomize(values, Random(seed=0))


def name_of(ask: Ask) -> AnswerName:
    """What the answers to an ask of an `ExactCollection` are called: only a second round asks a part of the devices."""
    return AnswerName("all", run=0, step=ask.step, round=1 if ask.cohort == EVERYONE else 2, part=0)


def batch_frame(collection: Collection, ask: Ask, ids: list[bytes], values: list[int]) -> Frame:
    batch = Batch(collection.name, collection.version, name_of(ask), b"".join(ids), exact_reports(values).to_bare())
    return Frame(collection.collection_id, batch=batch)


def upload_frame(collection: Collection, ask: Ask, ids: list[bytes], values: list[int]) -> Frame:
    entries = [
        Entry(*name_of(ask), report_id, exact_reports([value]).to_bare())
        for report_id, value in zip(ids, values, strict=True)
    ]
    return Frame(collection.collection_id, entries)
