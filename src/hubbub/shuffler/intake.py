"""What a shuffler takes from devices: each report once, in its time, and of the right size."""

from collections.abc import Sequence

from hubbub.collection import Clock, SignedCollection
from hubbub.collection.names import AnswerName
from hubbub.collection.shuffle_route import batch_name
from hubbub.service.base.limits import Reason, Receipt
from hubbub.shuffler.store import ShufflerStore, report_digest
from hubbub.wire.upload import Entry


def take_entries(entries: Sequence[Entry], collection: SignedCollection, store: ShufflerStore, clock: Clock) -> Receipt:
    """Store the reports of an upload in one transaction; all that is acknowledged is on the disk.

    A report that is stored already, with the same id and bytes, is acknowledged again; other bytes under the same id
    are refused. Neither the time nor the sender of a report is stored.
    """
    receipt = Receipt()
    with store.transaction():
        now = clock.now()
        for entry in entries:
            name = batch_name(collection.name, collection.version, entry.name)
            before = store.known(name, entry.report_id)
            if before is not None:
                if before == report_digest(entry.report):
                    receipt.duplicates += 1
                else:
                    receipt.rejected.append((entry.report_id.hex(), "replay"))
                continue
            reason = _refused(entry, collection, store, now)
            if reason is not None:
                receipt.rejected.append((entry.report_id.hex(), reason))
                continue
            store.begin(name, collection.version, entry.name, closing(collection, entry.name))
            store.add(name, entry.report_id, entry.report)
            receipt.accepted += 1
        for outcome, count in receipt.outcomes().items():
            store.count(outcome, count)
    return receipt


def closing(collection: SignedCollection, name: AnswerName) -> float:
    """The time at which the round of an answer closes, by the signed schedule."""
    return collection.round_times(name.question, name.run, name.step, name.round)[1]


def is_asked(collection: SignedCollection, name: AnswerName) -> bool:
    """Whether the signed terms of a collection allow such an answer at any time."""
    terms = collection.terms.get(name.question)
    if terms is None or not name.round <= terms.rounds or not name.part < terms.parts:
        return False
    if terms.study is None:
        return name.run == 0
    return name.step == 0 and (name.run == 0 or terms.study.every > 0)


def _refused(entry: Entry, collection: SignedCollection, store: ShufflerStore, now: float) -> Reason | None:
    route = collection.shuffle
    assert route is not None
    if not is_asked(collection, entry.name):
        return "unknown_ask"
    if (
        not route.sealed_bytes(1)
        <= len(entry.report)
        <= route.sealed_bytes(collection.terms[entry.question].report_bytes)
    ):
        return "malformed"
    opens, closes = collection.round_times(entry.question, entry.run, entry.step, entry.round)
    if now < opens:
        return "too_early"
    if now >= closes + collection.accepts_for or closes <= store.forgotten:
        return "late"
    name = batch_name(collection.name, collection.version, entry.name)
    batch = store.batch(name)
    if batch is not None and batch.state != "gathering":
        return "late"
    room = route.room(len(entry.report) - route.sealed_bytes(0))
    return None if (batch.size if batch else 0) < room else "over_ceiling"
