"""Where a client stands: what was spent, what remains, what waits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hubbub.client.accounts import Accounts
from hubbub.client.documents import Documents
from hubbub.client.names import memo_account
from hubbub.client.store import Store, collection_in
from hubbub.client.transport import Response, Unreachable
from hubbub.collection import Clock, Collection, SystemClock
from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.privacy.device_clock import since_boot
from hubbub.privacy.ledger import Spending, Status

__all__ = ["ClientStatus", "added", "read_status", "status_of"]


@dataclass(frozen=True)
class ClientStatus:
    """A client's own account, in units of 1e-12 epsilon.

    Parameters
    ----------
    collection, version, step
        What it answers, and when it is.
    event, window, user
        What is spent of the present step, of the present window and of a life, where they are limited.
    spent
        All that was ever spent, under every version.
    memos
        Permanent answers, by question.
    queued
        Reports that wait to be sent.
    counts
        What became of the others, and why asks and documents were refused.
    trouble
        The last thing that went wrong, if nothing has gone well since.
    """

    collection: str
    version: int
    step: int
    event: Spending | None
    window: Spending | None
    user: Spending | None
    spent: int
    memos: Mapping[str, int]
    queued: int
    counts: Mapping[str, int]
    trouble: str | None = None


def added(parts: list[Status], unit: str, limit: int | None) -> Spending | None:
    """One unit of both accounts together.

    Example:
        >>> added([], "event", 10)
        Spending(spent=0, remaining=10, limit=10)
    """
    if limit is None:
        return None
    found = [getattr(part, unit) for part in parts]
    spent = sum(one.spent for one in found if one is not None)
    return Spending(spent, max(0, limit - spent), limit)


def status_of(
    store: Store, collection: Collection, accounts: Accounts, queued: int, trouble: str | None = None
) -> ClientStatus:
    """The status, from the files.

    Example:
        >>> import tempfile
        >>> from hubbub.collection import ManualClock
        >>> from hubbub.collection.toml import EXAMPLE, load_collection
        >>> clock, collection = ManualClock(7200.0), load_collection(EXAMPLE)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(Path(folder), "themes", Random())
        ...     accounts = Accounts(Path(folder), store, collection, clock, clock.now, Random())
        ...     status_of(store, collection, accounts, queued=0).event
        ...     accounts.close()
        ...     store.close()
        Spending(spent=0, remaining=1000000000000, limit=1000000000000)
    """
    parts, budget = accounts.status(), collection.budget
    spent = sum(part.lifetime for part in parts)
    user = None if accounts.left is None else Spending(spent, max(0, accounts.left - spent), accounts.left)
    with store.transaction():
        counts = store.counts()
    return ClientStatus(
        collection=collection.name,
        version=collection.version,
        step=parts[0].step if parts else accounts.clock.step,
        event=added(parts, "event", budget.event),
        window=added(parts, "window", None if budget.window is None else budget.window.limit),
        user=user,
        spent=accounts.earlier + spent,
        memos=_memos(store, collection, accounts),
        queued=queued,
        counts=counts,
        trouble=trouble,
    )


def read_status(folder: str | os.PathLike[str], clock: Clock | None = None) -> ClientStatus:
    """The status of a folder, without reaching any server.

    Example:
        >>> read_status("no such folder")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: folder: got 'no such folder'; allowed: the folder of a client
    """
    path, rng = Path(folder), Random()
    name = collection_in(path)
    if name is None:
        raise InvalidValue("folder", str(folder), "the folder of a client")
    store = Store(path, name, rng)
    try:
        collection = Documents(store, _Nowhere(), (), name).collection(trusted=False)
        if collection is None:
            raise InvalidValue("folder", str(folder), "a client that has reached its server")
        accounts = Accounts(path, store, collection, clock or SystemClock(), since_boot, rng)
        try:
            with store.transaction():
                waiting = len(store.queued())
            waiting += len(accounts.pending())
            return status_of(store, collection, accounts, waiting)
        finally:
            accounts.close()
    finally:
        store.close()


def _memos(store: Store, collection: Collection, accounts: Accounts) -> dict[str, int]:
    """How many permanent answers there are for each question with memos."""
    names = [] if accounts.memos is None else [entry.ask_id for entry in accounts.memos.pending()]
    with store.transaction():
        names += store.memo_names()
    counted = {}
    for name, question in collection.questions.items():
        if question.kind == "memo":
            account = memo_account(question.field, question.mechanism_for(collection.fields[question.field]))
            counted[name] = len({one for one in names if one.startswith(account)})
    return counted


class _Nowhere:
    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        raise Unreachable("no server is asked")
