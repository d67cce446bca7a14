"""Answering an ask: freeze the value, pay, look at it, and randomise it."""

from __future__ import annotations

import json
from typing import Any

from hubbub.client.documents import Published, Refused
from hubbub.client.store import Followed, Store, code_bytes, read_code
from hubbub.collection import Collection
from hubbub.core.domain import Code
from hubbub.core.random import Random
from hubbub.mechanisms.memo.memo import Memo, Memoised
from hubbub.privacy.budget import BudgetExceeded
from hubbub.privacy.clock import StepRefused
from hubbub.protocols.symbols import Standing, Symbols

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
        mechanism = published.ask.mechanism
        make = self._from_memo if isinstance(mechanism, Memoised) else self._from_state
        if not self._collection.terms[published.question].state:
            make = self._fresh
        try:
            return make(published, step, report_id)
        except BudgetExceeded as error:
            raise Refused("budget", str(error)) from error
        except StepRefused as error:
            raise Refused("step", str(error)) from error

    def _fresh(self, published: Published, step: int, _: bytes) -> bytes:
        ask, code = published.ask, self._frozen(published.question, step)
        self._spend(published.question, step, ask.event().spent)
        return ask.mechanism.randomize(ask.view([code]), self._rng).to_bare()

    def _from_memo(self, published: Published, step: int, _: bytes) -> bytes:
        question, mechanism = published.question, published.ask.mechanism
        assert isinstance(mechanism, Memoised)
        account = self._collection.terms[question].account
        public, current = self._store.enrolled(account) or (mechanism.enroll(self._rng), None)
        value = published.ask.view([self._frozen(question, step)])[0]
        memo = self._memo(question, mechanism, value, public, step)
        if memo is None and current is not None:  # to refuse, or to answer otherwise, would tell that a value changed
            memo = self._known(account, current)
        self._store.enroll(account, public, current if memo is None else memo.key)
        if memo is None:
            raise Refused("budget", "nothing is left for a first memo")
        return mechanism.report_from(memo, self._rng).to_bare()

    def _memo(self, question: str, mechanism: Any, value: Any, public: int, step: int) -> Memo | None:
        """The memo of a value: the one there is, or a new one, paid for; None if it cannot be."""
        account, key = self._collection.terms[question].account, mechanism.memo_key(value, public)
        known = self._known(account, key)
        if known is not None:
            return known
        try:
            self._spend(question, step, mechanism.permanent_event().spent)
        except BudgetExceeded:
            return None
        memo: Memo = mechanism.remember(value, self._rng, public)
        self._store.add_memo(account, key, memo.to_bytes())
        return memo

    def _known(self, account: str, key: int) -> Memo | None:
        kept = self._store.memo(account, key)
        return None if kept is None else Memo.from_bytes(kept)

    def _from_state(self, published: Published, step: int, report_id: bytes) -> bytes | None:
        """One step of a stream of changes. The first state of a horizon is drawn and paid for as one.

        A report also says that the device is there, until the server is known to have heard it.
        """
        question, ask, symbols = published.question, published.ask, published.ask.mechanism
        assert isinstance(symbols, Symbols)
        values = ask.view([self._frozen(question, step)])
        stream = stream_of(self._collection, symbols, step)
        kept = self._store.followed(question, stream)
        if kept is None:
            self._spend(question, step, symbols.event().spent)
            kept = Followed(symbols.enroll(self._rng).to_bytes(), told=False, enrolment=None)
        new = not kept.told and kept.enrolment is None
        state = Standing.from_bytes(kept.state)
        told = state.following.node * symbols.plan.tree.span(state.level)
        if symbols.place(step)[1] <= told:  # under a version before, whose steps were others for a while
            return None
        state, said = symbols.step(state, step, values, self._rng)
        enrolment = report_id if new else kept.enrolment
        self._store.follow(question, stream, Followed(state.to_bytes(), kept.told, enrolment))
        if said is None and not new:
            return None
        return symbols.report(state.level, said, new=new).to_bare()

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
        kept = self._store.book.freeze(f"last:{field}" if last else field, step, code_bytes(code))
        assert isinstance(kept, bytes)
        return read_code(kept)


def stream_of(collection: Collection, symbols: Symbols, step: int) -> str:
    """What a stream of changes goes on under: its horizon, its mechanism, and the grid of steps.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> symbols = Symbols(epsilon=1.0, dimension=2, steps=4, changes=2)
        >>> stream_of(load_collection(EXAMPLE), symbols, 9) == stream_of(load_collection(EXAMPLE), symbols, 12)
        False
    """
    return json.dumps([symbols.place(step)[0], symbols.spec_id, collection.step_seconds, collection.origin])
