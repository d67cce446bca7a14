"""Published asks with the reports to them so far: open until their time is over, then final.

Also the signed documents by which devices hear of them.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.backends import LOCAL
from hubbub.collection import SignedCollection, seal
from hubbub.collection.names import AnswerName
from hubbub.collection.sealing import ASKS, tag_of
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.plugins import PluginFailed
from hubbub.core.reports import Array, Bools, Reports, Sketch
from hubbub.core.spec import Json
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask
from hubbub.questions.collection import Collection, Schedule
from hubbub.random.source import Random
from hubbub.service.base.limits import Ceilings
from hubbub.service.store.base import AskKey, AskRow, StoreChanges
from hubbub.service.store.report_ids import Ids, ReportIds
from hubbub.service.store.sql import Store
from hubbub.wire.batches import Batch


class AnswerPlace(NamedTuple):
    """Which ask a report answers, as the report names it, and in which collection."""

    collection: str
    name: AnswerName


class ReportOpener:
    """Reads the reports of one mechanism from their bytes, and refuses those that no client of it can have made.

    All reports of a mechanism have the same size, with columns at the same offsets: many are read at once.
    """

    def __init__(self, mechanism: ReportFormat) -> None:
        self._mechanism = mechanism
        self._size = mechanism.report_bytes
        self._places = {}
        at = 0
        for column in mechanism.columns:
            size = np.dtype(column.dtype).itemsize * math.prod(column.shape)
            self._places[column.name] = slice(at, at + size)
            at += size

    def open_batch(self, batch: Batch) -> Reports | None:
        """The reports of a batch; None if any of them cannot come from a client of the mechanism."""
        try:
            reports = batch.read(self._mechanism)
        except HubbubError:
            return None
        return reports if self._passes(reports) else None

    def open_each(self, reports: Sequence[bytes]) -> tuple[Reports, Bools]:
        """The reports that can come from a client of the mechanism, as one batch, and which of `reports` they are."""
        readable = np.fromiter((len(report) == self._size for report in reports), dtype=bool, count=len(reports))
        joined = b"".join(report for report in reports if len(report) == self._size)
        batch = self._batch(np.frombuffer(joined, dtype=np.uint8).reshape(-1, self._size))
        allowed = self._allowed(batch)
        readable[readable] = allowed
        return batch[allowed], readable

    def _batch(self, rows: NDArray[np.uint8]) -> Reports:
        parts: dict[str, dict[str, Array]] = {"public": {}, "private": {}}
        for column in self._mechanism.columns:
            data = np.ascontiguousarray(rows[:, self._places[column.name]])
            little = np.dtype(column.dtype).newbyteorder("<")
            array = data.view(little).reshape(len(rows), *column.shape)
            parts[column.part][column.name] = array.astype(column.dtype, copy=False)
        return Reports(self._mechanism.spec_id, public=parts["public"], private=parts["private"])

    def _allowed(self, batch: Reports) -> Bools:
        if self._passes(batch):
            return np.ones(len(batch), dtype=bool)
        return np.fromiter((self._passes(batch[row : row + 1]) for row in range(len(batch))), dtype=bool)

    def _passes(self, batch: Reports) -> bool:
        try:
            self._mechanism.check(batch)
        except HubbubError:
            return False
        return True


@dataclass(eq=False)
class OpenAsk:
    """Reports to `ask` count from `opens` until `until`, which is the collection's lateness after `closes`."""

    key: AskKey
    name: AnswerName
    """The name that its reports carry."""
    ask: Ask
    opens: float
    closes: float
    until: float
    sketch: Sketch
    ids: ReportIds
    final: bool = False
    keeps: bool = False
    """Whether the single reports are stored, in addition to the sketch."""
    screened: bool = False
    """Whether the sketch has a screen of its reports, by which forged ones are told."""
    shuffled: bytes | None = None
    """The hash of the batch that shufflers delivered; None until then."""
    failure: PluginFailed | None = None
    """What the mechanism, of another package, raised when its reports were to be counted."""

    @property
    def question(self) -> str:
        return self.name.question

    @property
    def number(self) -> int:
        """The step, or the run of a study, that is asked."""
        return self.name.run or self.name.step

    @property
    def place(self) -> AnswerPlace:
        """The name that its reports carry, and their collection."""
        return AnswerPlace(self.key.collection, self.name)

    @cached_property
    def opener(self) -> ReportOpener:
        """Reads its reports from their bytes."""
        return ReportOpener(self.ask.mechanism)

    def fold(self, reports: Reports) -> Sketch:
        """The sketch of some reports, with their screen where forged ones are looked for."""
        sketch = LOCAL.fold([reports], self.ask.mechanism)
        if not self.screened:
            return sketch
        from hubbub.mechanisms.frequency.screen import with_screen

        return with_screen(self.ask.mechanism, reports, sketch)

    def takes(self, now: float) -> bool:
        """Whether a report that comes now still counts."""
        return not self.final and self.opens <= now < self.until


class Board:
    """The asks whose report ids are still held (`asks`), and when known later asks will open (`expected`)."""

    def __init__(self, store: Store, rng: Random, ceilings: Ceilings | None = None) -> None:
        self._store, self._rng = store, rng
        self.screened: Callable[[str, str], bool] = lambda collection, question: False
        """Whether the sketches of a question, of the collection of a name, have a screen of their reports."""
        self.asks: dict[AskKey, OpenAsk] = {}
        self.expected: dict[AnswerPlace, float] = {}
        self.ceilings = ceilings or Ceilings()
        self.counting: tuple[str, str] | None = None
        """The collection and the question whose reports are being counted."""
        self._places: dict[AnswerPlace, OpenAsk] = {}
        self._of: dict[str, dict[str, dict[AskKey, OpenAsk]]] = {}  # by collection and question
        self._held = 0

    def publish(
        self, collection: Collection, rows: Sequence[AskRow], asks: Sequence[Ask], changes: StoreChanges
    ) -> list[OpenAsk]:
        """Open the asks of a round. An ask whose time is already over is final, and only stored."""
        published = [
            self._open(collection, row, ask, self._report_ids(row.key)) for row, ask in zip(rows, asks, strict=True)
        ]
        changes.asks += rows  # all parts of the round, or none if the mechanism of one raises
        for ask in published:
            if not ask.final:
                self.add(ask)
        return published

    def restore(self, collection: Collection, row: AskRow, ask: Ask) -> None:
        """Add a stored ask with the ids of its reports, after a restart."""
        ids = self._report_ids(row.key)
        ids.restore(self._store.id_pages(row.key))
        restored = self._open(collection, row, ask, ids)
        batch = self._store.shuffled_batch(row.key)
        restored.shuffled = None if batch is None else batch.digest
        self.add(restored)

    def _report_ids(self, key: AskKey) -> ReportIds:
        return ReportIds(self._rng, partial(self._store.some_id_pages, key))

    def _open(self, collection: Collection, row: AskRow, ask: Ask, ids: ReportIds) -> OpenAsk:
        return OpenAsk(
            key=row.key,
            name=Schedule(collection, row.question).name(row.step, row.round, row.part),
            ask=ask,
            opens=row.opens,
            closes=row.closes,
            until=row.closes + collection.lateness_seconds,
            sketch=Sketch.from_bytes(row.sketch),
            ids=ids,
            final=row.final,
            keeps=ask.kept or collection.questions[row.question].keeps,
            screened=self.screened(collection.name, row.question),
        )

    def close(self, asks: Sequence[OpenAsk], changes: StoreChanges) -> None:
        """Make asks final: their sketches never change again."""
        for ask in asks:
            if not ask.final:
                ask.final = True
                changes.finals.append(ask.key)

    def pages(self, ask: OpenAsk) -> int:
        """How many pages the ids of an ask fill in the store."""
        return ask.ids.pages

    def add(self, ask: OpenAsk) -> None:
        """Add an ask. Another ask with the same name is refused: reports to the two could not be told apart."""
        if self._places.setdefault(ask.place, ask) is not ask:
            raise InvalidValue("ask", str(ask.name), "a name that no other ask has")
        self.asks[ask.key] = ask
        self._of.setdefault(ask.key.collection, {}).setdefault(ask.question, {})[ask.key] = ask
        self._held += len(ask.ids)

    def drop(self, key: AskKey) -> None:
        """Remove an ask."""
        ask = self.asks.pop(key)
        del self._places[ask.place], self._of[key.collection][ask.question][key]
        self._held -= len(ask.ids)

    def add_ids(self, ask: OpenAsk, ids: Ids) -> None:
        """Add the ids of new reports to an ask of the board."""
        ask.ids.add(ids)
        self._held += len(ids)

    def find(self, place: AnswerPlace) -> OpenAsk | None:
        """The ask whose reports carry this name."""
        return self._places.get(place)

    def find_round(self, places: Sequence[AnswerPlace]) -> list[OpenAsk]:
        """The open asks of a round: one for each place, or none at all."""
        return [ask for place in places if (ask := self.find(place)) is not None]

    def of(self, collection: str, question: str) -> list[OpenAsk]:
        return list(self._of.get(collection, {}).get(question, {}).values())

    def of_collection(self, collection: str) -> list[OpenAsk]:
        """The asks of a collection. Any thread may call this while the writer changes the board."""
        return [ask for asks in list(self._of.get(collection, {}).values()) for ask in list(asks.values())]

    def ids_held(self) -> int:
        return self._held

    def room(self, ask: OpenAsk) -> int:
        """How many more reports an ask takes."""
        most = self.ceilings.kept_ask if ask.keeps else self.ceilings.ask
        return max(min(most - len(ask.ids), self.ceilings.held - self.ids_held()), 0)

    def open(self, collection: str, now: float) -> list[OpenAsk]:
        """The asks of a collection that devices may answer now, by question, round and part."""
        answerable = [ask for ask in self.of_collection(collection) if not ask.final and ask.opens <= now < ask.closes]
        return sorted(answerable, key=lambda ask: ask.name)


@dataclass(frozen=True)
class SignedDocument:
    """A document's bytes, their ETag, and the Unix time until which it is valid (None: for good)."""

    body: bytes
    etag: str
    until: float | None = None

    def fresh_seconds(self, now: float, *, most: int) -> int:
        """How many seconds a cache may keep the document."""
        return most if self.until is None else min(max(int(self.until - now), 0), most)


def signed_collection(collection: SignedCollection, private: bytes) -> SignedDocument:
    """The signed collection."""
    return _sealed(collection.spec(), private, None)


def signed_asks(
    collection: SignedCollection, open_asks: list[OpenAsk], *, step: int, until: float, private: bytes
) -> SignedDocument:
    """The signed open asks, each with the name of its answers, and until when they are all."""
    asks: list[Json] = []
    for ask in open_asks:
        name: dict[str, Json] = dict(ask.name._asdict())
        asks.append({**name, "closes": ask.closes, "ask": ask.ask.spec()})
    spec: dict[str, Json] = {
        "format": ASKS.version,
        "collection": collection.name,
        "version": collection.version,
        "step": step,
        "asks": asks,
        "closes": min((ask.closes for ask in open_asks), default=until),
    }
    return _sealed(spec, private, until)


def _sealed(spec: Json, private: bytes, until: float | None) -> SignedDocument:
    document = seal(spec, private)
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return SignedDocument(body, tag_of(document), until)
