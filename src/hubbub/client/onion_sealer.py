"""Reports encrypted in layers, for collections whose reports are shuffled."""

from __future__ import annotations

from hubbub.collection import Collection
from hubbub.collection.names import AnswerName
from hubbub.collection.shuffle_route import batch_name, layer_name
from hubbub.core.errors import InvalidValue
from hubbub.protocols.ask import Ask
from hubbub.shuffle.onion import wrap


class OnionReports:
    """Encrypts each report for the collector, and then in one layer for each shuffler, the last shuffler first.

    Every layer is bound to the name of the answer (collection, version, question, run, step, round, part), to the ask,
    and to the position of the party that opens it. It cannot be opened as part of anything else.

    Parameters
    ----------
    collection
        The collection in force, which says who shuffles.
    """

    def __init__(self, collection: Collection) -> None:
        if collection.shuffle is None:
            raise InvalidValue("trust", collection.trust, '"shuffle"')
        self._collection, self._route = collection, collection.shuffle.route

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
        """The report in its layers. The report's id is outside of them: only the first shuffler learns it."""
        batch = batch_name(self._collection.name, self._collection.version, name)
        return wrap(report, self._route, layer_name(batch, ask))
