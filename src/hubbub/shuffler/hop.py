"""One shuffler of a collection: it gathers, takes its turn when a batch's time is over, and hands on until it is heard.

It is driven by `take` and `receive`, which answer requests, and by `tick`, which does what is due. Whatever it does is
in its store first: a shuffler that is killed goes on where it was, with the same order and the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hubbub.client.transport import HttpTransport, Transport, Unreachable
from hubbub.collection import Clock, Collection
from hubbub.collection.admits import admits
from hubbub.collection.formats import ASKS
from hubbub.collection.safety import open_collection
from hubbub.collection.sealing import open_sealed
from hubbub.collection.shuffle_route import ShuffleRoute
from hubbub.collection.shuffled_batch import (
    SHUFFLED_TYPE,
    ShuffledBatch,
    check_batch,
    decode_shuffled,
    encode_shuffled,
)
from hubbub.collection.wire import JSON_TYPE, UPLOAD_TYPE, AnswerName
from hubbub.core.errors import DecodeError, HubbubError, InvalidValue
from hubbub.core.random import Random
from hubbub.core.spec import Json
from hubbub.protocols.ask import Ask
from hubbub.service.frames import RefusedRequest, Served, read_frame
from hubbub.service.logs import log
from hubbub.service.receipt import Receipt
from hubbub.service.store.base import StoreFailed
from hubbub.shuffler.intake import closing, is_asked, take_entries
from hubbub.shuffler.keys import ShufflerKeys
from hubbub.shuffler.store import BatchRow, ShufflerStore
from hubbub.shuffler.turn import take_turn

PATH = "/v1/shuffled"
"""Where shufflers and the collector take batches."""
REFRESH = 30.0
"""Seconds between one look for a new version of the collection and the next."""
MARGIN = 60.0
"""Seconds for which ids are held after a batch is over: a retried upload hears "duplicate", not "late"."""
_LATER = frozenset({408, 425, 429, *range(500, 600)})


class ShufflerHop:
    """A shuffler of one collection.

    Parameters
    ----------
    collection
        The collection's name.
    keys
        This shuffler's own; the signed collection says which place on the route has them.
    store
        What it keeps.
    collector
        Where the signed collection and its asks come from.
    trusted
        The keys that those are signed with.
    clock
        The time.
    connect
        Makes a transport from an address.
    rng
        Draws orders and fakes: leave it out, but in tests.
    """

    def __init__(
        self,
        collection: str,
        keys: ShufflerKeys,
        store: ShufflerStore,
        collector: Transport,
        trusted: bytes | Iterable[bytes],
        *,
        clock: Clock,
        connect: Callable[[str], Transport] = HttpTransport,
        rng: Random | None = None,
    ) -> None:
        self.name, self._keys, self._store, self._clock = collection, keys, store, clock
        self._collector, self._connect, self._rng = collector, connect, rng or Random()
        self._trusted = {trusted} if isinstance(trusted, bytes) else set(trusted)
        self._looked: float | None = None
        self._turn = threading.Lock()
        self.trouble = ""
        """What last went wrong, in words."""
        kept = store.note("collection")
        self.collection: Collection | None = None if kept is None else open_collection(json.loads(kept), self._trusted)

    # -- what it serves ---------------------------------------------------------------------------------------

    @property
    def route(self) -> tuple[ShuffleRoute, int]:
        """Who shuffles, and which of them this is."""
        route = None if self.collection is None else self.collection.shuffle
        if route is None:
            raise RefusedRequest("unknown_collection", "there is no collection yet whose reports are shuffled here")
        return route, route.place_of(self._keys.encryption.public, self._keys.signing.public)

    def refresh(self) -> None:
        """Look for the collection, and for a newer version of it; older ones are refused."""
        self._looked = self._clock.now()
        response = self._collector.request("GET", f"/v1/collections/{self.name}", {"Accept": "application/json"})
        if response.status != 200:
            raise Unreachable(f"GET /v1/collections/{self.name}: status {response.status}")
        document = _json(response.body)
        offered = open_collection(document, self._trusted)
        known = self.collection
        if offered.name != self.name:
            raise DecodeError("collection", offered.name, self.name)
        if known is not None and offered.version < known.version:
            raise DecodeError("version", offered.version, f"{known.version} or newer")
        if known is not None and offered.version == known.version and offered.collection_id != known.collection_id:
            raise DecodeError("version", offered.version, "what it was: a version never changes")
        with self._store.transaction():
            self._store.set_note("collection", json.dumps(document))
        self.collection = offered

    def take(self, kind: str, body: bytes) -> Receipt:
        """Keep the reports of a device's upload: what the first shuffler does."""
        _, place = self.route
        collection = self.collection
        assert collection is not None
        if place != 0:
            raise RefusedRequest("unknown_collection", "devices send to the first shuffler; this is another")
        if kind not in (UPLOAD_TYPE, JSON_TYPE):
            raise RefusedRequest("malformed", f"content type {kind[:80]!r}; allowed: {UPLOAD_TYPE}, {JSON_TYPE}")
        frame = read_frame(kind, body, Served({collection.name: collection}))
        return take_entries(frame.entries, collection, self._store, self._clock)

    def take_all(self, uploads: Sequence[tuple[str, bytes]]) -> list[Receipt | HubbubError]:
        """Keep several uploads in one transaction; what became of each. Where nothing can be kept, all of them fail."""
        outcomes: list[Receipt | HubbubError] = []
        try:
            with self._store.transaction():
                for kind, body in uploads:
                    try:
                        outcomes.append(self.take(kind, body))
                    except HubbubError as error:  # which is raised before anything of the upload is kept
                        outcomes.append(error)
        except sqlite3.Error as error:
            self.trouble = f"the store: {error}"
            return [StoreFailed(str(error)) for _ in uploads]
        return outcomes

    def receive(self, body: bytes) -> dict[str, Json]:
        """Keep a batch of the shuffler before this one; the same bytes again are acknowledged again."""
        route, place = self.route
        collection = self.collection
        assert collection is not None
        batch = decode_shuffled(body)
        Served({collection.name: collection}).find(batch.collection, batch.version, len(batch.onions))
        if place == 0 or not is_asked(collection, batch.answer):
            raise DecodeError("batch", batch.name, "one of a shuffler that hands on to this one")
        before = self._store.batch(batch.name)
        if before is not None:
            if before.digest != hashlib.sha256(body).digest():
                raise DecodeError("batch", batch.name, "the same bytes as before, under the same name")
            return {"batch": batch.name, "received": len(batch.onions)}
        closes = closing(collection, batch.answer)
        now = self._clock.now()
        if closes <= self._store.forgotten or now >= closes + collection.lateness_seconds:
            raise RefusedRequest("late", batch.name)
        if now < closes:
            raise RefusedRequest("too_early", batch.name)  # one of two clocks is wrong: it is tried again
        check_batch(batch, route, place, self._ask(batch.answer, collection).mechanism.report_bytes)
        with self._store.transaction():
            self._store.begin(batch.name, batch.version, batch.answer, closes, body)
            self._store.count("batches received")
        return {"batch": batch.name, "received": len(batch.onions)}

    # -- what is due ------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due. What goes wrong with one batch is told by `status`, and tried again while there is time."""
        with self._turn:
            self._look()
            if self.collection is None:
                return
            for batch in self._store.batches():
                try:
                    self._advance_or_drop(batch, self.collection)
                except Unreachable as error:
                    self.trouble = str(error)
                except Exception as error:  # a full disk, an ask of another shape: the other batches go on
                    self.trouble = f"{batch.name}: {type(error).__name__}: {error}"

    def status(self) -> dict[str, Json]:
        """Which batches there were, what became of reports until the latest was over, and what last went wrong.

        Anyone may ask: of a batch that gathers nothing is told. Whoever watches a device send would learn whether there
        was a report in it.
        """
        batches: list[Json] = [
            {"batch": row.name, "state": row.state, "note": row.note}
            for row in self._store.batches()
            if row.state != "gathering"
        ]
        version = None if self.collection is None else self.collection.version
        counts: dict[str, Json] = json.loads(self._store.note("counts") or "{}")
        head: dict[str, Json] = {"collection": self.name, "version": version}
        return {**head, "batches": batches, "counts": counts, "trouble": self.trouble}

    def _look(self) -> None:
        if self._looked is not None and 0 <= self._clock.now() - self._looked < REFRESH:
            return
        try:
            self.refresh()
        except HubbubError as error:
            self.trouble = str(error)

    def _advance_or_drop(self, batch: BatchRow, collection: Collection) -> None:
        try:
            self._advance(batch, collection)
        except Unreachable:
            raise
        except HubbubError as error:
            self._drop(batch, str(error))

    def _advance(self, batch: BatchRow, collection: Collection) -> None:
        """Take a batch as far as it goes now."""
        now = self._clock.now()
        over = now >= batch.closes + collection.lateness_seconds
        if batch.state in ("handed", "dropped"):
            if now >= batch.closes + collection.lateness_seconds + MARGIN:
                self._store.forget([batch.name])
            return
        if batch.version != collection.version:
            self._drop(batch, f"outdated_version: version {collection.version} is served, with other keys")
            return
        if over:
            self._drop(batch, f"nobody took it in time: {self.trouble}")
            return
        if batch.state == "gathering" and (batch.digest is not None or now >= batch.closes + collection.taken_for):
            self._store.close_batch(batch.name)
            batch = batch._replace(state="closed")
        if batch.state == "closed":
            self._make(batch, collection)
            batch = self._store.batch(batch.name) or batch
        if batch.state == "made":
            self._hand_on(batch)

    def _make(self, batch: BatchRow, collection: Collection) -> None:
        route, _ = self.route
        ask = self._ask(batch.answer, collection)
        whole = self._store.came(batch.name)
        if whole is not None:
            came = decode_shuffled(whole)
        else:
            onions = self._store.onions(batch.name)
            came = ShuffledBatch(collection.name, batch.version, batch.answer, [], onions)
        handed = take_turn(came, ask, route, self._keys, self._rng)
        said = handed.statements[-1]
        note = f"{said.received} came, {said.unreadable} unreadable, {said.repeated} repeated, {said.fakes} fakes"
        with self._store.transaction():
            self._store.make(batch.name, encode_shuffled(handed), note)
            self._store.count("unreadable", said.unreadable)
            self._store.count("repeated", said.repeated)
            self._store.count("fakes", said.fakes)

    def _hand_on(self, batch: BatchRow) -> None:
        route, place = self.route
        last = place + 1 == len(route.shufflers)
        transport = self._collector if last else self._connect(route.shufflers[place + 1].url)
        response = transport.request("POST", PATH, {"Content-Type": SHUFFLED_TYPE}, self._store.made(batch.name))
        if response.status == 200:
            self._store.end(batch.name, "handed", batch.note)
        elif response.status in _LATER:
            raise Unreachable(f"POST {PATH}: status {response.status}")
        else:
            raise InvalidValue("batch", f"status {response.status}", _detail(response.body))

    def _drop(self, batch: BatchRow, why: str) -> None:
        log("dropped", batch=batch.name, why=why)
        self._store.end(batch.name, "dropped", why)

    def _ask(self, answer: AnswerName, collection: Collection) -> Ask:
        """What the reports of a batch answer: signed, and as far as the signed terms allow it."""
        path = f"/v1/collections/{self.name}/asks/{answer}"
        response = self._collector.request("GET", path, {"Accept": "application/json"})
        if response.status != 200:
            raise Unreachable(f"GET {path}: status {response.status}")
        spec = ASKS.upgrade(open_sealed(_json(response.body), self._trusted))
        if (spec["collection"], spec["version"]) != (collection.name, collection.version):
            raise Unreachable(f"GET {path}: asks of version {spec['version']}")
        for each in spec["asks"]:
            if AnswerName(*(each[key] for key in AnswerName._fields)) == answer:
                ask = Ask.from_spec(each["ask"])
                place: dict[str, Any] = {"run": answer.run, "round": answer.round, "part": answer.part}
                reason = admits(collection.terms[answer.question], ask, **place, minimum_arc=collection.minimum_arc)
                if reason is not None:
                    raise InvalidValue("ask", reason, f"what the signed terms of {answer.question} allow")
                return ask
        raise Unreachable(f"GET {path}: another ask")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError("document", body[:40], f"JSON ({error})") from None


def _detail(body: bytes) -> str:
    """Why a batch was refused, as the problem document says."""
    try:
        problem = json.loads(body)
        return str(problem.get("detail") or problem.get("title"))[:200]
    except (ValueError, RecursionError, AttributeError):
        return "a batch that is taken"
