"""The documents that a client works with now, new versions of them, and answering the asks of a step."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from hubbub.client.answer import Answerer, admit_round, open_studies, part_for
from hubbub.client.documents import AskDocument, ClientRefusal, Documents, PublishedAsk
from hubbub.client.store import IN_FORCE, Answer, DeviceStore, Document
from hubbub.client.upload import Backoff, Delay, Unreachable, sealer_for, uniform
from hubbub.collection import SignedCollection
from hubbub.core.domain import Code
from hubbub.core.plugins import is_foreign
from hubbub.ledger.book import TooManyPromises
from hubbub.ledger.clock import TICKS
from hubbub.ledger.file import LedgerUnavailable
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.client.models import Updates


def adopt(store: DeviceStore, offered: SignedCollection, document: Document, old: SignedCollection | None) -> None:
    """Put a version in force. Its promises are added to those that the device keeps, and none is dropped.

    A version that promises less than the version in force is refused, whatever the clause. When a device adopts a
    version does not depend on what it recorded. Queued answers are dropped: they name the older version, which servers
    no longer accept. Memos and streams of changes continue where their question has not changed.

    `offered`, `document`: the new version, and the signed document that it came in. `old`: the version in force, where
    it can be read.
    """
    if old is not None:
        _refuse_weaker(offered, old)
    promises = [*offered.promises, *(promise for terms in offered.terms.values() for promise in terms.promises)]
    with store.transaction():
        check_version(store.in_force(), offered)  # another process may have been quicker
        try:
            store.book.promise(promise.scaled(TICKS) for promise in promises)
        except TooManyPromises as error:
            raise ClientRefusal("promises", str(error)) from error
        in_force = store.in_force()
        if in_force is not None and in_force != (offered.version, offered.collection_id):
            same_grid = old is not None and (old.step_seconds, old.origin) == (offered.step_seconds, offered.origin)
            unsent = store.outbox.drop(names=not same_grid)  # on another grid, the same step is another time
            for answer in unsent:
                store.settle_enrolment(answer.id, acknowledged=False)
            if unsent:
                store.outbox.count("outdated", len(unsent))
            old_fields = {} if old is None else old.fields
            store.forget_all_but(name for name, domain in old_fields.items() if offered.fields.get(name) == domain)
        store.set_document("collection", document)
        store.set_note(IN_FORCE, json.dumps([offered.version, offered.collection_id]))


def _refuse_weaker(offered: SignedCollection, old: SignedCollection) -> None:
    from hubbub.collection.safety import AGREED, weaker_clauses  # a device without a newer version need not load it

    for where, text in weaker_clauses(offered, old):
        raise ClientRefusal("weaker", f"{where}: {text}; {AGREED}")


def check_version(in_force: tuple[int, str] | None, offered: SignedCollection) -> None:
    """Refuse a version that is older than the one in force, or another document under its number."""
    if in_force is None:
        return
    version, collection_id = in_force
    if offered.version < version:
        raise ClientRefusal("version", f"{offered.version} is older than {version}")
    if offered.version == version and offered.collection_id != collection_id:
        raise ClientRefusal("version", f"another document has the number {version}")


_POLLS = 20  # times a step to look for an ask that is not there yet


class CurrentDocuments:
    """The collection in force and its latest asks, updated from the server and from the folder, which processes share.

    `store`, `documents`: the device's file, and the documents that it stores or fetches. `jitter`: over which part of
    half a step fetches are spread.
    """

    def __init__(self, store: DeviceStore, documents: Documents, rng: Random, *, jitter: float) -> None:
        self._store, self._documents, self._rng, self._jitter = store, documents, rng, jitter
        self._backoff = Backoff(rng)
        self._pause: Delay | None = None
        self._out_of_reach = False
        self.trouble: str | None = None
        self.asks: AskDocument | None = documents.asks()
        self.collection: SignedCollection | None = None
        self.load()

    def load(self) -> None:
        """Load the version in force, which another process may have changed."""
        with self._store.transaction():
            in_force = self._store.in_force()
        collection = self._documents.collection()
        if in_force is None:
            return
        if collection is None or in_force != (collection.version, collection.collection_id):
            # The promises are in the ledger: it is safe to fetch the document again.
            self.trouble = f"the kept document of version {in_force[0]} cannot be read, or is not signed by a known key"
            self.collection = None
            return
        self.collection = collection
        self._store.book.clock = self._store.clock_of(collection)

    def in_force(self, collection: SignedCollection) -> bool:
        """Whether a collection is the one in force. Called in a transaction: until that ends, no process changes it."""
        return self._store.in_force() == (collection.version, collection.collection_id)

    def asks_of(self, step: int) -> AskDocument | None:
        """The asks of a step of the collection in force; None where they are not known.

        While the server is out of reach, standing asks (which are the same in every step) and the asks of studies are
        taken from the last document, for as long as the collection keeps reports.
        """
        asks, collection = self.asks, self.collection
        if asks is None or collection is None or not _belongs_to(asks, collection) or asks.step > step:
            return None
        if asks.step == step:
            return asks
        age = (step - asks.step) * collection.step_seconds
        if not self._out_of_reach or age > collection.retention_days * 86400:
            return None
        studies = {name for name, terms in collection.terms.items() if terms.study is not None}
        standing = [
            published._replace(ask=replace(published.ask, step=step))
            for published in asks.asks
            if published.ask.standing
        ]
        of_studies = [published for published in asks.asks if published.question in studies]
        unreadable = [  # what is refused for an unreadable part is refused in every step
            ask if ask.name.question in studies else ask._replace(name=ask.name._replace(step=step))
            for ask in asks.unreadable
        ]
        return asks._replace(step=step, asks=(*standing, *of_studies), unreadable=tuple(unreadable))

    def refresh(self, now: float) -> None:
        """Fetch the documents that are due. After an error, remember it as `trouble`, and wait before the next try."""
        if not self._backoff.ready(now):
            return
        try:
            if self.collection is None:
                self._fetch_collection()
            if self.collection is None or not self._fetch_asks(self.collection, now):
                return
            self._backoff.succeeded()
            self._out_of_reach, self.trouble = False, None
        except (Unreachable, ClientRefusal) as error:
            self._out_of_reach, self.trouble = isinstance(error, Unreachable), str(error)
            self._backoff.failed(now)
            if isinstance(error, ClientRefusal):
                with self._store.transaction():
                    self._store.outbox.count(f"refused: {error.reason}")

    def _fetch_collection(self) -> None:
        with self._store.transaction():
            in_force = self._store.in_force()
        fetched = self._documents.fetch_collection()
        if fetched is not None:
            offered, document = fetched
            check_version(in_force, offered)
            adopt(self._store, offered, document, self._documents.collection(trusted=False))
        self.load()

    def _fetch_asks(self, collection: SignedCollection, now: float) -> bool:
        """Fetch asks if they are due; whether they were."""
        if self._has_asks(collection, now):
            self._pause = None
            return False
        pace = _shortest_round(collection)
        if self._pause is None:  # a new step or round: not every device at once
            spread = 0.0 if self.asks is None else self._jitter * pace / 2
            self._pause = Delay(now, uniform(self._rng) * spread)
        if not self._pause.over(now):
            return False
        self.asks = self._documents.fetch_asks() or self._documents.asks()
        self._pause = Delay(now, (0.5 + uniform(self._rng)) * pace / _POLLS)
        if self.asks is not None and not _belongs_to(self.asks, collection):
            self._fetch_collection()
        return True

    def _has_asks(self, collection: SignedCollection, now: float) -> bool:
        """Whether the latest asks are of this step, not yet closed, and include the present round of every study."""
        asks = self.asks
        if (
            asks is None
            or not _belongs_to(asks, collection)
            or asks.step != collection.step_at(now)
            or now >= asks.closes
        ):
            return False
        rounds = {(published.question, published.run, published.round) for published in asks.asks}
        return rounds.issuperset(open_studies(collection, now))


def _shortest_round(collection: SignedCollection) -> float:
    lengths = [
        collection.step_seconds if terms.study is None else terms.study.round_seconds
        for terms in collection.terms.values()
    ]
    return float(min(lengths))


def _belongs_to(asks: AskDocument, collection: SignedCollection) -> bool:
    return (asks.collection, asks.version) == (collection.name, collection.version)


_MOST_NOTED = 1 << 12


class Responder:
    """Answers the asks of the present step, each once."""

    def __init__(self, store: DeviceStore, rng: Random) -> None:
        self._store, self._rng = store, rng
        self._noted: set[tuple[str, str]] = set()

    def respond(self, current: CurrentDocuments, now: float, wait: float, updates: Updates) -> int:
        """Answer the asks that are due, and return how many new reports there are.

        An ask about a public model waits until `updates` has what to answer.
        """
        collection = current.collection
        if collection is None:
            return 0
        try:
            with self._store.transaction():  # while this is held, no other process changes the version in force
                if current.in_force(collection):
                    step = self._store.book.observe().step
                    asks = None if step < 0 else current.asks_of(step)
                    rounds = {} if asks is None else asks.rounds()
                    for unreadable in () if asks is None else asks.unreadable:
                        name = unreadable.name._replace(part=0)
                        rounds.pop(name, None)  # nobody can say whether its parts ask a device twice
                        self._refuse(str(name), unreadable.refusal)
                    return sum(
                        self._answer_round(collection, parts, step, now, wait, updates.get(name))
                        for name, parts in rounds.items()
                        if name in updates or not any(part.needs_model for part in parts)
                    )
        except BaseException:
            self._noted.clear()  # what was noted may not have been stored
            raise
        current.load()
        return 0

    def note(self, name: str, outcome: str) -> bool:
        """Remember the outcome of an ask; whether it is a new one, which has to be counted."""
        is_new = (name, outcome) not in self._noted
        if len(self._noted) > _MOST_NOTED:
            self._noted.clear()
        self._noted.add((name, outcome))
        return is_new

    def _answer_round(
        self,
        collection: SignedCollection,
        parts: list[PublishedAsk],
        step: int,
        now: float,
        wait: float,
        update: Code | None,
    ) -> int:
        """Answer one round, and return how many new reports there are: 0 or 1.

        An error of another package's mechanism is a refusal, and undoes what was stored for this round alone.
        """
        try:
            with self._store.savepoint():
                return self._answer_open_round(collection, parts, step, now, wait, update)
        except LedgerUnavailable:  # the store fails, and the whole transaction with it
            raise
        except Exception as error:
            foreign = [kind for kind in (type(published.ask.mechanism) for published in parts) if is_foreign(kind)]
            if not foreign:
                raise
            about = f"{foreign[0].__name__} raised {type(error).__name__}: {error}"
            self._refuse(str(parts[0].name._replace(part=0)), ClientRefusal("mechanism", about))
            return 0

    def _answer_open_round(
        self,
        collection: SignedCollection,
        parts: list[PublishedAsk],
        step: int,
        now: float,
        wait: float,
        update: Code | None,
    ) -> int:
        """Answer one round, if it is open and has no answer yet, and return how many new reports there are: 0 or 1."""
        first, outbox = parts[0], self._store.outbox
        name = str(first.name._replace(part=0))
        if (name, "not asked") in self._noted or outbox.answered(first.name):
            return 0
        try:
            admit_round(collection, parts, step)
            opens, closes = collection.round_times(first.question, first.run, step, first.round)
            if not opens + wait * (closes - opens) <= now < closes:
                return 0
            cover, report_id = b"" if collection.cover else None, self._rng.bytes(16)
            published = part_for(collection, parts, self._store.device_key)
            answer = Answer(str((published or first).name), step, closes, report_id, cover)
            if published is None:
                self._cover(collection, answer)
                self.note(name, "not asked")
                return 0
            try:
                report = Answerer(collection, self._store, self._rng, update).answer(published, step, report_id)
            except ClientRefusal as error:
                if error.reason == "budget":
                    self._cover(collection, answer)
                raise
            if report is not None:  # without a report, the step of a stream is answered all the same
                answer = answer._replace(
                    report=sealer_for(collection, self._rng).seal(published.name, published.ask, report)
                )
            self._store.queue(answer, since=collection.opens(step))
            return int(report is not None)
        except ClientRefusal as error:
            self._refuse(name, error)
            return 0

    def _refuse(self, name: str, refusal: ClientRefusal) -> None:
        if self.note(name, refusal.reason):
            self._store.outbox.count(f"refused: {refusal.reason}")

    def _cover(self, collection: SignedCollection, answer: Answer) -> None:
        """Where the collection has cover, queue a frame without a report: on the network it looks like an answer."""
        if answer.report is not None:
            self._store.queue(answer, since=collection.opens(answer.step))
