"""Answering the asks of a step: which are admitted, which are due, and the outcome of each."""

from __future__ import annotations

from hubbub.client.admit import admit_round, part_of
from hubbub.client.answer import Answerer
from hubbub.client.current import CurrentDocuments
from hubbub.client.documents import ClientRefusal, PublishedAsk
from hubbub.client.outbox import Answer
from hubbub.client.report_sealer import sealer_for
from hubbub.client.store import DeviceStore
from hubbub.collection import Collection
from hubbub.collection.names import AnswerName
from hubbub.core.plugin_guard import is_foreign
from hubbub.core.random import Random
from hubbub.privacy.ledger_file import LedgerUnavailable
from hubbub.protocols.cohort import place_on_circle

_MOST_NOTED = 1 << 12


class Responder:
    """Answers the asks of the present step, each once.

    Parameters
    ----------
    store
        The device's files.
    rng
        The device's randomness.
    """

    def __init__(self, store: DeviceStore, rng: Random) -> None:
        self._store, self._rng = store, rng
        self._noted: set[tuple[str, str]] = set()

    def respond(self, current: CurrentDocuments, now: float, wait: float) -> int:
        """Answer the asks that are due, and return how many new reports there are."""
        collection = current.collection
        if collection is None:
            return 0
        try:
            with self._store.transaction():  # while this is held, no other process changes the version in force
                if current.in_force(collection):
                    step = self._store.book.observe().step
                    asks = None if step < 0 else current.asks_of(step)
                    rounds: dict[AnswerName, list[PublishedAsk]] = {}
                    for published in () if asks is None else asks.asks:
                        rounds.setdefault(published.name._replace(part=0), []).append(published)
                    for unreadable in () if asks is None else asks.unreadable:
                        name = unreadable.name._replace(part=0)
                        rounds.pop(name, None)  # nobody can say whether its parts ask a device twice
                        self._refuse(str(name), unreadable.refusal)
                    return sum(self._answer_round(collection, parts, step, now, wait) for parts in rounds.values())
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
        self, collection: Collection, parts: list[PublishedAsk], step: int, now: float, wait: float
    ) -> int:
        """Answer one round, and return how many new reports there are: 0 or 1.

        An error of another package's mechanism is a refusal, and undoes what was stored for this round alone.
        """
        try:
            with self._store.savepoint():
                return self._answer_open_round(collection, parts, step, now, wait)
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
        self, collection: Collection, parts: list[PublishedAsk], step: int, now: float, wait: float
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
            published = part_of(parts, place_on_circle(self._store.device_key, collection.name))
            answer = Answer(str((published or first).name), step, closes, report_id, cover)
            if published is None:
                self._cover(collection, answer)
                self.note(name, "not asked")
                return 0
            try:
                report = Answerer(collection, self._store, self._rng).answer(published, step, report_id)
            except ClientRefusal as error:
                if error.reason == "budget":
                    self._cover(collection, answer)
                raise
            if report is not None:  # without a report, the step of a stream is answered all the same
                answer = answer._replace(report=sealer_for(collection).seal(published.name, published.ask, report))
            self._store.queue(answer, since=collection.opens(step))
            return int(report is not None)
        except ClientRefusal as error:
            self._refuse(name, error)
            return 0

    def _refuse(self, name: str, refusal: ClientRefusal) -> None:
        if self.note(name, refusal.reason):
            self._store.outbox.count(f"refused: {refusal.reason}")

    def _cover(self, collection: Collection, answer: Answer) -> None:
        """Where the collection has cover, queue a frame without a report: on the network it looks like an answer."""
        if answer.report is not None:
            self._store.queue(answer, since=collection.opens(answer.step))
