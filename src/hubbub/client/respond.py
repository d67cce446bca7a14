"""Going through the asks of a step: which are admitted, which are due, and what became of each."""

from __future__ import annotations

from hubbub.client.admit import admit, on_arc, phase_of
from hubbub.client.answer import Answerer
from hubbub.client.current import Current
from hubbub.client.documents import Published, Refused
from hubbub.client.outbox import Answer
from hubbub.client.store import Store
from hubbub.collection import Collection
from hubbub.core.random import Random
from hubbub.protocols.cohort import place_on_circle

__all__ = ["Responder"]

_MOST_NOTED = 1 << 12


class Responder:
    """Answers the asks of the present step, each once.

    Parameters
    ----------
    store
        The device's files.
    rng
        The device's randomness.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from hubbub.collection import ManualClock
        >>> clock = ManualClock()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(Path(folder), "themes", Random(), clock, clock.now)
        ...     Responder(store, Random()).note("popular:0:7:1:0", "budget")  # is that news?
        ...     store.close()
        True
    """

    def __init__(self, store: Store, rng: Random) -> None:
        self._store, self._rng = store, rng
        self._noted: set[tuple[str, str]] = set()

    def respond(self, current: Current, now: float, wait: float) -> int:
        """Answer what is due; how many new reports there are."""
        collection = current.collection
        if collection is None:
            return 0
        try:
            with self._store.transaction():  # while this is held, no other process changes the version in force
                if current.in_force(collection):
                    step = self._store.book.observe().step
                    asks = None if step < 0 else current.asked(step)
                    published = () if asks is None else asks.published
                    closes = 0.0 if asks is None else asks.closes
                    return sum(self._one(collection, each, step, closes, now, wait) for each in published)
        except BaseException:
            self._noted.clear()  # what was noted may not have been stored
            raise
        current.load()
        return 0

    def note(self, name: str, what: str) -> bool:
        """Note what became of an ask; whether that is news."""
        news = (name, what) not in self._noted
        if len(self._noted) > _MOST_NOTED:
            self._noted.clear()
        self._noted.add((name, what))
        return news

    def _one(
        self, collection: Collection, published: Published, step: int, ends: float, now: float, wait: float
    ) -> int:
        """Answer one ask, if its name has no answer yet and it is due; how many new reports there are."""
        name = str(published.name)
        if (name, "not asked") in self._noted or self._store.outbox.answered(name):
            return 0
        try:
            admit(collection, published, step)
            opens, closes = phase_of(collection, published.question, step, now)
            if collection.terms[published.question].rounds > 1 and now >= ends:
                return 0  # of a round that is over
            if now < opens + wait * (closes - opens):
                return 0
            answer = Answer(name, step, closes, self._rng.bytes(16), b"" if collection.cover else None)
            if not on_arc(published, place_on_circle(self._store.device_key, collection.name)):
                self._cover(answer)
                self.note(name, "not asked")
                return 0
            try:
                report = Answerer(collection, self._store, self._rng).answer(published, step, answer.id)
            except Refused as error:
                if error.reason == "budget":
                    self._cover(answer)
                raise
            # A stream that has nothing to say is done with its step, too.
            self._store.outbox.add(answer if report is None else answer._replace(report=report))
            return int(report is not None)
        except Refused as error:
            if self.note(name, error.reason):
                self._store.outbox.count(f"refused: {error.reason}")
            return 0

    def _cover(self, answer: Answer) -> None:
        """Where the collection has cover, whoever watches the network sees no difference between an answer and none."""
        if answer.report is not None:
            self._store.outbox.add(answer)
