"""Going through the asks of a step: which are admitted, which are due, and what became of each."""

from __future__ import annotations

from hubbub.client.accounts import Accounts
from hubbub.client.admit import admit, on_arc, phase_of
from hubbub.client.answer import Answerer
from hubbub.client.current import Current
from hubbub.client.documents import Asks, Published, Refused
from hubbub.client.store import Store
from hubbub.collection import Collection
from hubbub.core.random import Random
from hubbub.protocols.cohort import place_on_circle

__all__ = ["Responder"]

_PHASES = 2  # asks that a question may have in a step
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
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(Path(folder), "themes", Random())
        ...     Responder(store, Random()).note("ask 1", "budget")  # is that news?
        ...     store.close()
        True
    """

    def __init__(self, store: Store, rng: Random) -> None:
        self._store, self._rng = store, rng
        self._noted: set[tuple[str, str]] = set()

    def respond(self, current: Current, now: float, wait: float) -> int:
        """Answer what is due; how many new reports there are."""
        collection, accounts = current.collection, current.accounts
        if collection is None or accounts is None:
            return 0
        step = accounts.observe()
        asks = current.asked(step)
        if asks is None or step < 0:
            return 0
        try:
            with self._store.transaction():  # while this is held, no other process changes the version in force
                if current.in_force(collection):
                    return sum(self._one(collection, accounts, asks, each, now, wait) for each in _few(asks))
        except BaseException:
            self._noted.clear()  # what was noted may not have been stored
            raise
        current.load()
        return 0

    def note(self, ask_id: str, what: str) -> bool:
        """Note what became of an ask; whether that is news."""
        news = (ask_id, what) not in self._noted
        if len(self._noted) > _MOST_NOTED:
            self._noted.clear()
        self._noted.add((ask_id, what))
        return news

    def _one(
        self, collection: Collection, accounts: Accounts, asks: Asks, published: Published, now: float, wait: float
    ) -> int:
        ask_id, step = str(published.name), asks.step
        if (ask_id, "done") in self._noted or self._store.covered(ask_id):
            return 0
        try:
            admit(collection, published, step)
            opens, closes = phase_of(collection, published.question, step, now)
            if collection.questions[published.question].adaptive and now >= asks.closes:
                return 0  # of a phase that is over
            if now < opens + wait * (closes - opens):
                return 0
            made = False
            if collection.cover or self._is_asked(collection, published):
                self._store.expect(ask_id, step, closes)
            try:
                if self._is_asked(collection, published):
                    made = Answerer(collection, self._store, accounts, self._rng).answer(published, step)
                    if not made and collection.cover and self._is_silent(collection, published, step):
                        self._cover(published)
                elif collection.cover:
                    self._cover(published)
            except Refused as error:
                if error.reason == "budget" and collection.cover:
                    self._cover(published)
                raise
            self.note(ask_id, "done")
            return int(made)
        except Refused as error:
            if self.note(ask_id, error.reason):
                self._store.count(f"refused: {error.reason}")
            return 0

    def _is_asked(self, collection: Collection, published: Published) -> bool:
        return on_arc(published, place_on_circle(self._store.device_key, collection.name))

    def _is_silent(self, collection: Collection, published: Published, step: int) -> bool:
        """Whether a device's stream has nothing to say at a step."""
        stream = collection.questions[published.question].kind == "changes"
        return stream and not self._store.answered(published.question, step)

    def _cover(self, published: Published) -> None:
        """Whoever watches the network sees no difference between an answer and none."""
        self._store.cover(str(published.name), self._rng.bytes(16), published.ask.step)


def _few(asks: Asks) -> list[Published]:
    """At most as many asks of a question as a step has phases: more are none that a protocol makes."""
    counted: dict[str, int] = {}
    few = []
    for published in asks.published:
        counted[published.question] = counted.get(published.question, 0) + 1
        if counted[published.question] <= _PHASES:
            few.append(published)
    return few
