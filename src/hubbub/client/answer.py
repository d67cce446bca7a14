"""Answering an ask: freeze the value, pay, look at it, and randomise it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from hubbub.client.documents import Published, Refused
from hubbub.client.store import Kept, Store, code_bytes, frozen_key, read_code
from hubbub.collection import Collection
from hubbub.collection.terms import ASKS
from hubbub.core.domain import Code
from hubbub.core.errors import DecodeError
from hubbub.core.random import Random
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.stateful import Stateful, States
from hubbub.privacy.budget import BudgetExceeded
from hubbub.privacy.clock import StepRefused

__all__ = ["Answerer", "stream_of"]


class Answerer:
    """Makes the answers of one device to one version of a collection. Called inside a transaction of its store.

    Parameters
    ----------
    collection
        The collection in force.
    store
        Where values, states and debits are.
    rng
        The device's randomness.

    Example:
        >>> import tempfile
        >>> from dataclasses import replace
        >>> from pathlib import Path
        >>> from hubbub.collection import ManualClock
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> clock, collection = ManualClock(7200.0), load_collection(EXAMPLE)
        >>> published = Published("popular", replace(next(collection.protocol("popular")), step=2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(Path(folder), "themes", Random(), clock, clock.now)
        ...     store.book.clock = store.clock_of(collection)
        ...     with store.transaction():
        ...         len(Answerer(collection, store, Random()).answer(published, 2, b"i" * 16)), store.book.rows.total()
        ...     store.close()
        (1, 1000000000000)
    """

    def __init__(self, collection: Collection, store: Store, rng: Random) -> None:
        self._collection, self._store, self._rng = collection, store, rng

    def answer(self, published: Published, step: int, report_id: bytes) -> bytes | None:
        """The report, paid for; None where the device has nothing to say at this step."""
        mechanism, values = published.ask.mechanism, published.ask.view([self._frozen(published.question, step)])
        try:
            if isinstance(mechanism, Stateful):
                return self._from_state(published.question, mechanism, step, values, report_id)
            assert isinstance(mechanism, Mechanism)
            self._spend(published.question, step, mechanism.event().spent)
            return mechanism.randomize(values, self._rng).to_bare()
        except BudgetExceeded as error:
            raise Refused("budget", str(error)) from error
        except StepRefused as error:
            raise Refused("step", str(error)) from error
        except DecodeError as error:
            raise Refused("state", str(error)) from error

    def _from_state(self, question: str, mechanism: Stateful, step: int, values: Any, report_id: bytes) -> bytes | None:
        """One step of a device that remembers, from the state that it keeps; the first is drawn here.

        Where the server must know who takes part, a report says so until it is known to have come.
        """
        key, stream = self._place(question, mechanism, step)
        kept = self._store.state(key, stream)
        known = None if kept is None else States.from_bytes(mechanism, kept.state)
        states = mechanism.enroll(1, self._rng) if known is None else known
        price = int(mechanism.price(states, step, values)[0])
        refusal = self._refusal(question, step, price) if price else None
        states, reports, speaks = mechanism.step(states, step, values, self._rng, np.array([refusal is None]))
        kept = kept or Kept(b"")
        new = mechanism.enrols and not kept.told and kept.enrolment is None
        reports, speaks = mechanism.with_enrolment(states, reports, speaks, np.array([new]))
        if refusal is not None and not speaks[0]:
            raise refusal
        enrolment = report_id if new and speaks[0] else kept.enrolment
        self._store.keep_state(key, stream, Kept(states.to_bytes(), kept.told, enrolment))
        return reports.to_bare() if speaks[0] else None

    def _place(self, question: str, mechanism: Stateful, step: int) -> tuple[str, str]:
        """Under what a state is kept, and which stream it goes on with: where that is another, the device enrols anew.

        Questions that are paid for by an account of their own share what it paid for.
        """
        account = self._collection.terms[question].account
        key = f"question:{question}" if account == ASKS else account
        stream = mechanism.state_key(step)
        return key, stream and stream_of(self._collection, mechanism, step)

    def _refusal(self, question: str, step: int, units: int) -> BudgetExceeded | None:
        """Pay, or say why that is not possible: to refuse an ask, or to answer it otherwise, might tell of a value."""
        try:
            self._spend(question, step, units)
        except BudgetExceeded as error:
            return error
        return None

    def _spend(self, question: str, step: int, units: int) -> None:
        self._store.book.spend(step, self._collection.terms[question].account, question, units)

    def _frozen(self, question: str, step: int) -> Code:
        """The value that all asks of a step see: what was recorded in it; of memos and streams, the last one."""
        terms = self._collection.terms[question]
        (field,) = terms.fields
        recorded, last = self._store.recorded(field), terms.frozen == "last"
        if recorded is not None and (last or self._collection.step_at(recorded[0]) == step):
            code = recorded[1]
        else:
            code = self._collection.missing(field)
        kept = self._store.book.freeze(frozen_key([field], last=last), step, code_bytes(code))
        assert isinstance(kept, bytes)
        return read_code(kept)


def stream_of(collection: Collection, mechanism: Stateful, step: int) -> str:
    """What a stream goes on under: its own key (a horizon), its mechanism, and the grid of steps.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> from hubbub.protocols.change_stream import ChangeStream
        >>> stream = ChangeStream(epsilon=1.0, dimension=2, steps=4, changes=2)
        >>> stream_of(load_collection(EXAMPLE), stream, 9) == stream_of(load_collection(EXAMPLE), stream, 12)
        False
    """
    grid = (collection.step_seconds, collection.origin)
    return json.dumps([mechanism.state_key(step), mechanism.spec_id, *grid])
