"""Admission: a request is read and checked as a whole, before any of its reports is counted."""

from __future__ import annotations

from hubbub.collection import Clock
from hubbub.collection.shuffled_batch import decode_shuffled
from hubbub.core.errors import DecodeError
from hubbub.service.frames import Frame, RefusedRequest, Served, read_frame
from hubbub.service.limits import Limits
from hubbub.service.open_asks import AnswerPlace, Board
from hubbub.service.quota import Quota
from hubbub.service.shuffled import open_shuffled
from hubbub.service.store.sql import Store
from hubbub.shuffle.onion import OnionKey


class Admission:
    """Turns the body of a request into a `Frame`, or raises `RefusedRequest`.

    Parameters
    ----------
    served
        The collections that are served.
    store, board
        The collector's store and open asks.
    limits, clock
        The largest body, and how many reports a second are taken.
    onion_key
        As of `Collector`.

    Example:
        >>> from hubbub.service.example import example_collector
        >>> collector = example_collector()
        >>> admission = Admission(collector.served, collector.store, collector.board, clock=collector.clock)
        >>> admission.read("text/plain", b"hostile")
        Traceback (most recent call last):
            ...
        hubbub.service.frames.RefusedRequest: malformed: content type 'text/plain'; allowed: ...
    """

    def __init__(
        self,
        served: Served,
        store: Store,
        board: Board,
        *,
        clock: Clock,
        limits: Limits | None = None,
        onion_key: OnionKey | None = None,
    ) -> None:
        self._served = served
        self._shuffled = {collection.collection_id for collection in served.current.values() if collection.shuffle}
        self._store, self._board, self._onion_key = store, board, onion_key
        self._limits = limits or Limits()
        self._quota = Quota(rate=self._limits.rate, burst=self._limits.burst, clock=clock)

    def read(self, content_type: str, body: bytes) -> Frame:
        """Read an upload or a batch that devices send directly."""
        _check_size(body, self._limits.most_bytes)
        frame = read_frame(content_type, body, self._served)
        count = max(frame.count, 1)
        if frame.collection in self._shuffled:
            detail = "send to the first shuffler, whose address is in the signed collection"
            raise RefusedRequest("not_shuffled", detail, collection=frame.collection, count=count)
        self._check_ceiling(frame)
        wait = self._quota.take(frame.collection, count)
        if wait:
            detail = f"more than {self._limits.rate:g} reports a second; try again in {wait:.3g} seconds"
            raise RefusedRequest("over_quota", detail, collection=frame.collection, count=count, wait=wait)
        return frame

    def read_shuffled(self, body: bytes) -> Frame:
        """Read a batch from the last shuffler, and decrypt its reports."""
        _check_size(body, self._limits.shuffled_bytes)
        try:
            batch = decode_shuffled(body)
            collection = self._served.find(batch.collection, batch.version, len(batch.onions))
            if collection.shuffle is None or self._onion_key is None:
                raise RefusedRequest("malformed", f"reports of {collection.name} are not shuffled")
            ask = self._board.find(AnswerPlace(collection.collection_id, batch.answer))
            if ask is None:
                known = self._store.knows(collection.collection_id, batch.answer)
                raise RefusedRequest("late" if known else "unknown_ask", batch.name, count=max(len(batch.onions), 1))
            spot_checks = self._store.spot_checks(ask.key)
            opened = open_shuffled(batch, body, collection, ask, self._onion_key, spot_checks)
        except DecodeError as error:
            raise RefusedRequest("malformed", str(error)) from None
        return Frame(collection.collection_id, shuffled=opened)

    def _check_ceiling(self, frame: Frame) -> None:
        """Refuse a batch to an ask that takes no more reports, before its reports are read one by one."""
        if frame.batch is None:
            return
        ask = self._board.find(AnswerPlace(frame.collection, frame.batch.name))
        if ask is not None and not self._board.room(ask):
            detail = f"{len(ask.ids):,} reports to this ask are all that is taken"
            count = max(frame.count, 1)
            raise RefusedRequest("over_ceiling", detail, collection=frame.collection, count=count, wait=60.0)


def _check_size(body: bytes, most: int) -> None:
    if len(body) > most:
        raise RefusedRequest("too_large", f"{len(body):,} bytes; at most {most:,}")
