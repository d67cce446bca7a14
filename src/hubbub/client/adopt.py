"""Adopting a new version of a collection: at once, and without dropping any promise of the versions before."""

from __future__ import annotations

import json

from hubbub.client.documents import ClientRefusal
from hubbub.client.store import IN_FORCE, DeviceStore, Document
from hubbub.collection import Collection
from hubbub.privacy.book import TooManyPromises
from hubbub.privacy.device_clock import TICKS

__all__ = ["adopt"]


def adopt(store: DeviceStore, offered: Collection, document: Document, old: Collection | None) -> None:
    """Put a version in force. Its promises are added to those that the device keeps, and none is dropped.

    A version that promises less than the version in force is refused, whatever the clause. When a device adopts a
    version does not depend on what it recorded. Queued answers are dropped: they name the older version, which servers
    no longer accept. Memos and streams of changes continue where their question has not changed.

    Parameters
    ----------
    store
        The device's file.
    offered, document
        The new version, and the signed document that it came in.
    old
        The version in force, where it can be read.
    """
    if old is not None:
        _refuse_weaker(offered, old)
    promises = [*offered.promises, *(promise for terms in offered.terms.values() for promise in terms.promises)]
    with store.transaction():
        check_version(store.in_force(), offered)  # another process may have been quicker
        try:
            store.book.promise(promise.scaled(TICKS) for promise in promises)
        except TooManyPromises as error:
            raise ClientRefusal("promises", str(error)) from error
        in_force = store.in_force()
        if in_force is not None and in_force != (offered.version, offered.collection_id):
            same_grid = old is not None and (old.step_seconds, old.origin) == (offered.step_seconds, offered.origin)
            unsent = store.outbox.drop(names=not same_grid)  # on another grid, the same step is another time
            for answer in unsent:
                store.settle_enrolment(answer.id, acknowledged=False)
            if unsent:
                store.outbox.count("outdated", len(unsent))
            old_fields = {} if old is None else old.fields
            store.forget_all_but(name for name, domain in old_fields.items() if offered.fields.get(name) == domain)
        store.set_document("collection", document)
        store.set_note(IN_FORCE, json.dumps([offered.version, offered.collection_id]))


def _refuse_weaker(offered: Collection, old: Collection) -> None:
    from hubbub.collection.weaker import AGREED, weaker_clauses  # a device without a newer version need not load it

    for where, text in weaker_clauses(offered, old):
        raise ClientRefusal("weaker", f"{where}: {text}; {AGREED}")


def check_version(in_force: tuple[int, str] | None, offered: Collection) -> None:
    """Refuse a version that is older than the one in force, or another document under its number."""
    if in_force is None:
        return
    version, collection_id = in_force
    if offered.version < version:
        raise ClientRefusal("version", f"{offered.version} is older than {version}")
    if offered.version == version and collection_id and offered.collection_id != collection_id:
        raise ClientRefusal("version", f"another document has the number {version}")
