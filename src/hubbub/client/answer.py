"""Answering an ask: freeze the value, look at it, randomise it, and keep the bytes with their debit."""

from __future__ import annotations

from typing import Any

from hubbub.client.accounts import Accounts
from hubbub.client.documents import Published, Refused
from hubbub.client.names import memo_account
from hubbub.client.store import Queued, Store, code_bytes, read_code
from hubbub.collection import Collection
from hubbub.collection.fields import Code
from hubbub.core.random import Random
from hubbub.mechanisms.memo.memo import Memo, Memoised
from hubbub.privacy.ledger import BudgetExceeded, StepRefused

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
            if self._collection.questions[published.question].kind == "memo":
                return self._from_memo(published, step)
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
            return ask.mechanism.randomize(ask.view([code]), self._rng).to_bytes()

        ledger.answer(ask.ask_id, step, ask.event(), make)
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
        report = mechanism.report_from(memo, self._rng).to_bytes()
        self._store.enroll(account, public, memo.key)
        self._store.enqueue(published.question, Queued(self._rng.bytes(16), ask.ask_id, step, report))
        return True

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
        """The value that all asks of a step see: what was last recorded in it; of a memo, what was last recorded."""
        spec = self._collection.questions[question]
        recorded = self._store.recorded(spec.field)
        lasting = spec.kind == "memo"
        if recorded is not None and (lasting or recorded[0] == step):
            code = recorded[1]
        else:
            code = self._collection.missing(spec.field)
        ledger = self._accounts.any
        if ledger is None:
            return code
        name = f"memo:{spec.field}" if lasting else spec.field
        return read_code(ledger.freeze(name, step, code_bytes(code)))
