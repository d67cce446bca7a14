"""Public models that devices train together: fetching them, and having the host program compute its updates."""

from collections.abc import Callable
from typing import Any

from hubbub.client.answer import admit_round, part_for
from hubbub.client.documents import AskDocument, ClientRefusal, Documents, PublishedAsk
from hubbub.client.store import DeviceStore
from hubbub.client.upload import Backoff, Unreachable
from hubbub.collection import SignedCollection
from hubbub.collection.names import AnswerName
from hubbub.core.domain import Code
from hubbub.random.source import Random

ModelFunction = Callable[[bytes], Any]
"""Takes the bytes of a public model, and returns the vector by which this device would change it."""
Updates = dict[AnswerName, Code | None]
"""The codes of the computed vectors, by the round that they answer; None where there is no function."""


class Models:
    """Computes a device's updates of public models: once for every round that it answers.

    A model is fetched whether or not there is a function, and whatever that does: a function that is missing counts as
    the vector recorded last, one that raises or returns no vector as zeros.
    """

    def __init__(self, store: DeviceStore, documents: Documents, rng: Random) -> None:
        self._store, self._documents = store, documents
        self._backoff = Backoff(rng)
        self._updates: Updates = {}
        self.functions: dict[str, ModelFunction] = {}
        self.trouble: str | None = None

    def updates(self, collection: SignedCollection, asks: AskDocument, now: float, wait: float) -> Updates:
        """The updates for the rounds that are to be answered now, in so far as their models could be fetched."""
        rounds = asks.rounds()
        self._updates = {name: update for name, update in self._updates.items() if name in rounds}
        for name, parts in rounds.items():
            needs_model = any(part.needs_model for part in parts)
            if needs_model and name not in self._updates and self._backoff.ready(now):
                self._compute(collection, asks, name, parts, now, wait)
        return self._updates

    def _compute(
        self,
        collection: SignedCollection,
        asks: AskDocument,
        name: AnswerName,
        parts: list[PublishedAsk],
        now: float,
        wait: float,
    ) -> None:
        try:
            admit_round(collection, parts, asks.step)
            opens, closes = collection.round_times(name.question, name.run, asks.step, name.round)
            with self._store.transaction():
                answered = self._store.outbox.answered(name)
            if answered or not opens + wait * (closes - opens) <= now < closes:
                return
            mine = part_for(collection, parts, self._store.device_key)
            # With cover, whoever watches must not see who is asked: everyone fetches the model.
            fetched = mine or (parts[0] if collection.cover else None)
            content = None if fetched is None else self._fetch(fetched)
        except Unreachable as error:
            self._backoff.failed(now)
            self.trouble = str(error)
        except ClientRefusal as error:
            self._backoff.failed(now)
            self.trouble = str(error)
            with self._store.transaction():
                self._store.outbox.count(f"refused: {error.reason}")
        else:
            self._backoff.succeeded()
            self.trouble = None
            self._updates[name] = None
            function = self.functions.get(name.question)
            if content is not None and mine is not None and function is not None:
                self._updates[name] = self._vector(collection, name.question, function, content)

    def _fetch(self, published: PublishedAsk) -> bytes:
        view = published.ask.view
        return self._documents.fetch_model(str(view.spec()["model"]), view.content_bytes)

    def _vector(self, collection: SignedCollection, question: str, function: ModelFunction, content: bytes) -> Code:
        """The code of what the function returns; that of zeros if it fails."""
        domain = collection.fields[collection.terms[question].fields[0]]
        try:
            return domain.code(function(content))
        except Exception as error:  # whatever it is, silence would tell of it
            self.trouble = f"the function of {question} raised {type(error).__name__}: {error}"
            with self._store.transaction():
                self._store.outbox.count("no update")
            return domain.missing()
