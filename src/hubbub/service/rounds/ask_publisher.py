"""Publishing asks: rows of the store, open asks on the board, and the signed documents that devices fetch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hubbub.collection import Collection, seal
from hubbub.collection.formats import ASKS
from hubbub.collection.sealing import tag_of
from hubbub.core.reports import Sketch
from hubbub.core.spec import Json, canonical
from hubbub.protocols.ask import Ask
from hubbub.random.source import Random
from hubbub.service.ingest.open_asks import Board, OpenAsk
from hubbub.service.ingest.report_ids import ReportIds
from hubbub.service.rounds.question_run import QuestionRun
from hubbub.service.store.base import AskKey, AskRow, StoreChanges
from hubbub.service.store.sql import Store


class AskPublisher:
    """Puts asks on a board: new ones with `publish`, stored ones with `restore`."""

    def __init__(self, board: Board, store: Store, rng: Random) -> None:
        self._board, self._store, self._rng = board, store, rng

    def find(self, run: QuestionRun, asks: Sequence[Ask]) -> list[OpenAsk]:
        """The open asks on the board for the asks of a round: one for each, or none at all."""
        return [ask for place in run.places(asks) if (ask := self._board.find(place)) is not None]

    def publish(self, run: QuestionRun, asks: Sequence[Ask], now: float, changes: StoreChanges) -> list[OpenAsk]:
        """Open the asks of a round. An ask whose time is already over is only stored, with an empty final sketch."""
        rows, published = [], []
        for part, (ask, place) in enumerate(zip(asks, run.places(asks), strict=True)):
            number, round = place.name.run or place.name.step, place.name.round
            closes = run.schedule.times(number, round)[1]
            missed = now >= closes + run.collection.lateness_seconds
            row = AskRow(
                *run.key(ask, round, part),
                question=run.era.question,
                first=run.era.first,
                step=number,
                round=round,
                part=part,
                spec=canonical(ask.spec()),
                opens=now,
                closes=closes,
                final=missed,
                forgotten=missed,
                sketch=ask.mechanism.empty().to_bytes(),
            )
            rows.append(row)
            published.append(_open_ask(run, row, ask, self._report_ids(row.key)))
        changes.asks += rows  # all parts of the round, or none if the mechanism of one raises
        for open_ask in published:
            if not open_ask.final:
                self._board.add(open_ask)
        return published

    def restore(self, run: QuestionRun, row: AskRow, ask: Ask) -> None:
        """Put a stored ask back on the board with the ids of its reports, after a restart."""
        ids = self._report_ids(row.key)
        ids.restore(self._store.id_pages(row.key))
        restored = _open_ask(run, row, ask, ids)
        batch = self._store.shuffled_batch(row.key)
        restored.shuffled = None if batch is None else batch.digest
        self._board.add(restored)

    def _report_ids(self, key: AskKey) -> ReportIds:
        return ReportIds(self._rng, partial(self._store.some_id_pages, key))


def _open_ask(run: QuestionRun, row: AskRow, ask: Ask, ids: ReportIds) -> OpenAsk:
    return OpenAsk(
        key=row.key,
        name=run.schedule.name(row.step, row.round, row.part),
        ask=ask,
        opens=row.opens,
        closes=row.closes,
        until=row.closes + run.collection.lateness_seconds,
        sketch=Sketch.from_bytes(row.sketch),
        ids=ids,
        final=row.final,
        keeps=ask.kept or run.collection.questions[row.question].keeps,
    )


@dataclass(frozen=True)
class SignedDocument:
    """A document's bytes, their ETag, and the Unix time until which it is valid (None: for good)."""

    body: bytes
    etag: str
    until: float | None = None

    def fresh_seconds(self, now: float, *, most: int) -> int:
        """How many seconds a cache may keep the document."""
        return most if self.until is None else min(max(int(self.until - now), 0), most)


def signed_collection(collection: Collection, private: bytes) -> SignedDocument:
    """The signed collection."""
    return _sealed(collection.spec(), private, None)


def signed_asks(
    collection: Collection, open_asks: list[OpenAsk], *, step: int, until: float, private: bytes
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
