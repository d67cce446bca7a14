"""Answering an ask: freeze the value, look at it, randomise it, and keep the bytes with their debit."""

from __future__ import annotations

from typing import Any

from hubbub.client.accounts import Accounts
from hubbub.client.documents import Published, Refused
from hubbub.client.names import memo_account, stream_name
from hubbub.client.store import Followed, Queued, Store, code_bytes, read_code
from hubbub.collection import Collection
from hubbub.collection.fields import Code
from hubbub.core.event import Event
from hubbub.core.random import Random
from hubbub.mechanisms.memo.memo import Memo, Memoised
from hubbub.privacy.ledger import BudgetExceeded, Entry, Ledger, StepRefused
from hubbub.protocols.symbols import Standing, Symbols

__all__ = ["Answerer"]


class Answerer:
    """Makes the answers of one device to one version of a collection. Called inside a transaction of its store.

    Parameters
    ----------
    collection
        The collection in force.
    store, accounts
        Where values and debits are.
    rng
        The device's randomness.

    Example:
        >>> import tempfile
        >>> from dataclasses import replace
        >>> from pathlib import Path
        >>> from hubbub.collection import ManualClock
        >>> from hubbub.collection.toml import EXAMPLE, load_collection
        >>> clock, collection = ManualClock(7200.0), load_collection(EXAMPLE)
        >>> published = Published("popular", replace(next(collection.protocol("popular")), step=2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(Path(folder), "themes", Random())
        ...     accounts = Accounts(Path(folder), store, collection, clock, clock.now, Random())
        ...     with store.transaction():
        ...         answerer = Answerer(collection, store, accounts, Random())
        ...         answerer.answer(published, 2), answerer.answer(published, 2), accounts.spent()
        ...     accounts.close()
        ...     store.close()
        (True, False, 1000000000000)
    """

    def __init__(self, collection: Collection, store: Store, accounts: Accounts, rng: Random) -> None:
        self._collection, self._store, self._accounts, self._rng = collection, store, accounts, rng

    def answer(self, published: Published, step: int) -> bool:
        """Answer an ask, if it is not answered yet and the ledger allows it; whether there is a new report."""
        try:
            kind = self._collection.questions[published.question].kind
            if kind == "memo":
                return self._from_memo(published, step)
            if kind == "changes":
                return self._from_state(published, step)
            return self._paid(published, step)
        except BudgetExceeded as error:
            raise Refused("budget", str(error)) from error
        except StepRefused as error:
            raise Refused("step", str(error)) from error

    def _paid(self, published: Published, step: int) -> bool:
        ledger, ask, made = self._accounts.asks, published.ask, []
        if ledger is None:
            raise Refused("budget", "nothing is left")
        code = self._frozen(published.question, step)

        def make() -> bytes:
            made.append(True)
            return ask.mechanism.randomize(ask.view([code]), self._rng).to_bare()

        ledger.answer(str(published.name), step, ask.event(), make)
        return bool(made)

    def _from_memo(self, published: Published, step: int) -> bool:
        ask, mechanism = published.ask, published.ask.mechanism
        assert isinstance(mechanism, Memoised)
        if self._store.answered(published.question, step):
            return False
        account = memo_account(self._collection.questions[published.question].field, mechanism)
        known = self._store.enrolled(account)
        public, current = (mechanism.enroll(self._rng), None) if known is None else known
        if known is None:
            self._store.enroll(account, public)
        value = ask.view([self._frozen(published.question, step)])[0]
        name = f"{account}{mechanism.memo_key(value, public)}"
        memo = self._memo(mechanism, name, value, public, step)
        if memo is None and current is not None:  # to refuse, or to answer otherwise, would tell that a value changed
            memo = self._known(f"{account}{current}")
        if memo is None:
            raise Refused("budget", "nothing is left for a first memo")
        report = mechanism.report_from(memo, self._rng).to_bare()
        self._store.enroll(account, public, memo.key)
        self._store.enqueue(published.question, Queued(self._rng.bytes(16), str(published.name), step, report))
        return True

    def _from_state(self, published: Published, step: int) -> bool:
        """One step of a stream of changes: the state goes on and what it says is queued, both or neither.

        The first state of a horizon is drawn and paid for as one. A report also says that the device is there, until
        the server is known to have heard it.
        """
        question, ask, symbols = published.question, published.ask, published.ask.mechanism
        assert isinstance(symbols, Symbols)
        if self._store.answered(question, step):
            return False
        name = stream_name(question, symbols.place(step)[0])
        values = ask.view([self._frozen(question, step)])
        kept = self._store.followed(name)
        if kept is not None:
            self._begun(name)
        state = self._first_state(symbols, name, step) if kept is None else Standing.from_bytes(kept.state)
        new = kept is None or (not kept.told and kept.enrolment is None)
        state, said = symbols.step(state, step, values, self._rng)
        report_id = self._rng.bytes(16)
        told, enrolment = (False, None) if kept is None else (kept.told, kept.enrolment)
        self._store.follow(name, Followed(state.to_bytes(), told, report_id if new else enrolment))
        self._store.unfollow(stream_name(question), but=name)
        if said is None and not new:
            return False
        report = symbols.report(state.level, said, new=new).to_bare()
        self._store.enqueue(question, Queued(report_id, str(published.name), step, report))
        return True

    def _first_state(self, symbols: Symbols, name: str, step: int) -> Standing:
        """The state that a horizon begins with, paid for: the one there is if the device stopped before it was kept."""
        ledger = self._accounts.asks
        if ledger is None:
            raise Refused("budget", "nothing is left")
        paid = self._paid_state(ledger, name)
        if paid is None:
            spent = symbols.event()
            event = Event(spent.mechanism, spent.spec_id, spent.spent, step)
            paid = ledger.answer(name, step, event, lambda: symbols.enroll(self._rng).to_bytes())
        if paid.report is None:  # a later one was kept: to begin again would tell more than was paid for
            raise Refused("state", f"{name} was begun before")
        return Standing.from_bytes(paid.report)

    def _paid_state(self, ledger: Ledger, name: str) -> Entry | None:
        return next((entry for entry in ledger.pending() if entry.ask_id == name), None)

    def _begun(self, name: str) -> None:
        """Let go of the first state once a later one is kept for good: nothing may ever begin from it again."""
        ledger = self._accounts.asks
        paid = None if ledger is None else self._paid_state(ledger, name)
        if ledger is not None and paid is not None:
            ledger.sent(paid.id)

    def _memo(self, mechanism: Any, name: str, value: Any, public: int, step: int) -> Memo | None:
        """The memo of this name: the one there is, or a new one, paid for; None if it cannot be."""
        known = self._known(name)
        if known is not None or self._accounts.memos is None:
            return known

        def make() -> bytes:
            made: bytes = mechanism.remember(value, self._rng, public).to_bytes()
            return made

        try:
            entry = self._accounts.memos.answer(name, step, mechanism.permanent_event(), make)
        except BudgetExceeded:
            return None
        assert entry.report is not None
        return Memo.from_bytes(entry.report)

    def _known(self, name: str) -> Memo | None:
        carried = self._store.memo(name)
        if carried is None and self._accounts.memos is not None:
            # A memo is an entry that is never sent: it and its debit were stored as one.
            carried = next((one.report for one in self._accounts.memos.pending() if one.ask_id == name), None)
        return None if carried is None else Memo.from_bytes(carried)

    def _frozen(self, question: str, step: int) -> Code:
        """The value that all asks of a step see: what was recorded in it; of memos and streams, the last one."""
        spec = self._collection.questions[question]
        recorded = self._store.recorded(spec.field)
        lasting = spec.kind in ("memo", "changes")
        if recorded is not None and (lasting or recorded[0] == step):
            code = recorded[1]
        else:
            code = self._collection.missing(spec.field)
        ledger = self._accounts.any
        if ledger is None:
            return code
        name = f"memo:{spec.field}" if lasting else spec.field
        return read_code(ledger.freeze(name, step, code_bytes(code)))
