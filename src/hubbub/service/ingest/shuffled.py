"""Batches from shufflers: checks their signatures and their size, and decrypts their reports."""

import hashlib
from collections.abc import Collection as Several
from typing import NamedTuple

from hubbub.backends import LOCAL
from hubbub.collection import SignedCollection
from hubbub.collection.names import AnswerName
from hubbub.collection.shuffle_route import ShuffleRoute, batch_name, layer_name
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Reports, Sketch
from hubbub.protocols.ask import Ask
from hubbub.random.source import Random
from hubbub.service.base.api import ShuffledReceipt
from hubbub.service.base.limits import RefusedRequest
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.ingest.warm_up import invented_reports
from hubbub.service.store.base import AskKey, ShuffledRow
from hubbub.shuffle.onion import OnionKey, missing_checks, peel, wrap
from hubbub.wire.batches import ShuffledBatch, check_batch
from hubbub.wire.upload import Entry, encode_upload

MOST_CHECKS = 1000
"""The most spot checks that are made at once."""


class OpenedBatch(NamedTuple):
    """A batch whose innermost layer is decrypted: its reports, and how many other onions it held.

    Its reports have no ids: an ask takes one shuffled batch, which counts once as a whole.
    """

    answer: AnswerName
    digest: bytes
    reports: Reports
    fakes: int
    unreadable: int
    repeated: int
    checks: int
    lost: int

    def row(self, key: AskKey) -> ShuffledRow:
        """The row to store."""
        n = len(self.reports)
        return ShuffledRow(*key, self.digest, n, self.fakes, self.unreadable, self.repeated, self.checks, self.lost)

    def sketch(self, ask: OpenAsk) -> Sketch:
        """The sketch of the reports, with the number of fakes among them."""
        if self.fakes:  # with fakes among them, no reports look genuine
            return LOCAL.fold([self.reports], ask.ask.mechanism).with_fakes(self.fakes)
        return ask.fold(self.reports)

    def receipt(self) -> ShuffledReceipt:
        """The answer to the last shuffler, always the same for the same bytes."""
        return ShuffledReceipt(
            batch=str(self.answer),
            accepted=len(self.reports),
            fakes=self.fakes,
            unreadable=self.unreadable,
            repeated=self.repeated,
        )


def open_shuffled(
    batch: ShuffledBatch, body: bytes, collection: SignedCollection, ask: OpenAsk, key: OnionKey, checks: Several[bytes]
) -> OpenedBatch:
    """Decrypt a batch from the last shuffler, or refuse all of it (`RefusedRequest`).

    Every shuffler must have signed its statement, and the numbers must add up. The collector's own reports, `checks`,
    are recognised by their innermost layer, and taken out first.
    """
    route, count = collection.shuffle, max(len(batch.onions), 1)
    if not isinstance(route, ShuffleRoute):
        raise DecodeError("batch", batch.name, "a batch of a collection whose reports are encrypted in layers")
    mechanism = ask.ask.mechanism
    check_batch(batch, route, len(route.shufflers), mechanism.report_bytes)
    own = frozenset(checks)
    onions = [onion for onion in batch.onions if onion not in own]
    peeled = peel(onions, key, layer_name(batch.name, ask.ask), place=len(route.shufflers))
    reports, readable = ask.opener.open_each(peeled.inside)
    people = len(reports) - batch.fakes
    if people < route.least:
        # Without the number: the last shuffler shows the reason to anyone.
        detail = f"too few reports of people; at least {route.least:,}, as is signed"
        raise RefusedRequest("under_minimum", detail, collection=collection.collection_id, count=count)
    return OpenedBatch(
        answer=batch.answer,
        digest=hashlib.sha256(body).digest(),
        reports=reports,
        fakes=batch.fakes,
        unreadable=peeled.unreadable + int((~readable).sum()),
        repeated=peeled.repeated,
        checks=len(own),
        lost=missing_checks(batch.onions, own),
    )


def check_onion_key(collection: SignedCollection, key: OnionKey | None) -> None:
    """Refuse to serve a collection whose innermost layers are encrypted to another key."""
    if collection.shuffle is None:
        return
    public = None if key is None else key.public.hex()
    if public != collection.shuffle.collector_key:
        shown = "no key" if public is None else f"{public[:16]}..."
        raise InvalidValue("onion_key", shown, f"that of the collector_key of {collection.name}")


def make_checks(
    collection: SignedCollection, answer: AnswerName, ask: Ask, count: int, rng: Random
) -> list[tuple[list[bytes], bytes]]:
    """Make uploads of the collector's own reports, each with the onion that the last shuffler will deliver for it.

    The uploads look like those of devices. Their reports are drawn as for some value, and are not counted.

    Parameters
    ----------
    rng
        The source of randomness; a secure one, except in tests.
    """
    route = collection.shuffle
    assert isinstance(route, ShuffleRoute)
    name = layer_name(batch_name(collection.name, collection.version, answer), ask)
    hops = len(route.shufflers)
    checks = []
    for _ in range(count):
        report = invented_reports(ask, 1, rng).to_bare()
        inner = wrap(report, route.route[hops:], name, place=hops)
        entry = Entry(*answer, rng.bytes(16), wrap(inner, route.route[:hops], name))
        upload = encode_upload(collection.name, collection.version, [entry], collection.frame_bytes)
        checks.append(([upload], inner))
    return checks
