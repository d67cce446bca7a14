"""A crowd that answers a collection's questions, whose reports land as rows; some are sent twice."""

from typing import Any

import numpy as np
import pyarrow as pa

import hubbub as hb
from hubbub.authoring import load_collection
from hubbub.backends.report_files import SketchKey, landing_batch, row_bytes
from hubbub.collection.names import AnswerName
from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Count, CountResult, Release
from hubbub.protocols.views.basic import Prefix
from hubbub.questions.collection import Collection
from hubbub.spark.kept import messages_of, schedule_of
from tests.shared.small_collections import THEME, collection_text

QUESTIONS = {
    "looks": {"kind": "histogram", "field": "theme", "epsilon": 1.5},
    "flow": {"kind": "stream", "field": "theme", "epsilon": 1.0, "method": "LBA", "w": 3},
    "asked": {"kind": "table", "columns": ["theme", "level"], "epsilon": 2.0},
    "words": {"kind": "top", "field": "code", "epsilon": 4.0, "k": 3, "start": "2026-12-01T00:00Z"},
    "together": {"kind": "itemsets", "field": "basket", "epsilon": 4.0, "k": 3, "start": "2026-12-01T00:00Z"},
}
FIELDS: dict[str, dict[str, Any]] = {
    "theme": THEME,
    "level": {"kind": "ordinal", "size": 6},
    "code": {"kind": "ordinal", "size": 1 << 24},
    "basket": {"kind": "sets", "most": 4, "items": {"kind": "ordinal", "size": 12}},
}


def survey(minimum_batch: int = 20) -> Collection:
    """A collection with a histogram, a stream whose asks depend on answers, and two studies."""
    privacy = {"user": 1000.0, "minimum_batch": minimum_batch}
    text = collection_text(fields=FIELDS, questions=QUESTIONS, privacy=privacy)
    return load_collection(text)


class Crowd:
    """Answers asks with n reports each, keeps the reports, and remembers every row that lands."""

    def __init__(self, collection: Collection, n: int = 600) -> None:
        self.collection, self.n = collection, n
        self.rows: list[tuple[SketchKey, bytes, bytes]] = []
        self.mechanisms: dict[str, ReportFormat] = {}
        self.kept: dict[AnswerName, Reports] = {}
        self._rng = hb.Random(seed=5)

    def sketches(self, asks: Any) -> list[Sketch]:
        return [self._sketch(name, ask) for name, ask in asks]

    def _sketch(self, name: AnswerName, ask: Ask) -> Sketch:
        mechanism = ask.mechanism
        assert isinstance(mechanism, Mechanism)
        if isinstance(ask.view, Prefix):
            codes = np.resize(np.repeat([77, 1 << 20, 12345], [5, 3, 2]), self.n)
            values: Any = ask.view(codes)
        else:
            values = (mechanism.example_values(7) * self.n)[: self.n]
        reports = self.kept[name] = mechanism.randomize(values, self._rng)
        self.mechanisms[mechanism.spec_id] = mechanism
        key = SketchKey(self.collection.name, self.collection.version, *name, mechanism.spec_id)
        ids = np.random.default_rng(len(self.rows)).bytes(16 * self.n)
        rows = [(key, ids[16 * at : 16 * at + 16], row) for at, row in enumerate(row_bytes(mechanism, reports))]
        self.rows += rows + rows[: self.n // 5]
        return mechanism.accumulate(reports)

    def count(self, name: AnswerName, count: Count) -> CountResult:
        return count.among(lambda: [self.kept[name]])

    def answer(self, question: str, *, number: int = 0, steps: int | None = None) -> list[Release]:
        """Run a question's protocol with this crowd."""
        made: list[Release] = []
        for message in messages_of(schedule_of(self.collection, question, number), self, number, None):
            assert isinstance(message, Release)
            made.append(message)
            if len(made) == steps:
                break
        return made

    def batch(self) -> pa.RecordBatch:
        """All rows that landed, in a mixed order."""
        order = np.random.default_rng(3).permutation(len(self.rows))
        return landing_batch([self.rows[at] for at in order], list(self.mechanisms.values()))


def told(releases: list[Release]) -> list[Any]:
    """What releases say, to be compared."""
    listed: list[Any] = []
    for release in releases:
        listed += [release.step, release.n, release.stopped]
        for name, each in release.estimates.items():
            listed += [name, each.value.tolist(), each.variance.tolist(), each.labels]
    return listed
