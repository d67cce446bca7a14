"""Changing to a new version of a collection: accounts are closed, memos and lifetime spending carry over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hubbub.client.accounts import Accounts
from hubbub.client.documents import Documents
from hubbub.client.store import Store
from hubbub.collection import Clock, Collection
from hubbub.core.random import Random

__all__ = ["adopt"]


def adopt(
    folder: Path,
    store: Store,
    documents: Documents,
    clock: Clock,
    monotonic: Callable[[], float],
    rng: Random,
) -> bool:
    """Put the newest kept version in force, if the one before has nothing left in the present window; whether it is.

    A version that came at once would let a server spend a whole window again with each.

    Example:
        >>> import tempfile
        >>> from hubbub.client.transport import HttpTransport
        >>> from hubbub.collection import ManualClock
        >>> clock = ManualClock()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(Path(folder), "themes", Random())
        ...     documents = Documents(store, HttpTransport("http://localhost:9"), (bytes(32),), "themes")
        ...     adopt(Path(folder), store, documents, clock, clock.now, Random())  # nothing was ever fetched
        ...     store.close()
        False
    """
    offered = documents.collection("next")
    if offered is None:
        return False
    old = documents.collection("collection", trusted=False)
    with store.transaction():
        in_force = store.in_force()
    same = in_force == (offered.version, offered.collection_id)
    if in_force is None or same or old is None:
        with store.transaction():
            if store.in_force() == in_force:
                _put(store, offered)
        return True
    accounts = Accounts(folder, store, old, clock, monotonic, rng)
    try:
        accounts.observe()
        if not accounts.clear():
            return False
        with store.transaction():  # nobody answers meanwhile: see Client._answer
            if store.in_force() == in_force:
                _carry(store, old, accounts)
                store.forget(name for name, domain in old.fields.items() if offered.fields.get(name) != domain)
                _put(store, offered)
        return True
    finally:
        accounts.close()


def _put(store: Store, offered: Collection) -> None:
    document = store.document("next")
    assert document is not None
    store.keep("collection", document)
    store.put_in_force(offered.version, offered.collection_id)


def _carry(store: Store, old: Collection, accounts: Accounts) -> None:
    store.retire(old.version, accounts.spent(), old.budget.user)
    if accounts.memos is not None:
        for entry in accounts.memos.pending():
            assert entry.report is not None
            store.carry_memo(entry.ask_id, entry.report)
    store.unfollow()  # a stream is of one version: what it told cannot be gone on from
    unsent = store.empty_queue() + len(accounts.pending())
    if unsent:
        store.count("outdated", unsent)
