"""Batches that shufflers hand on: who signed them, what is in them, and whether they are large enough."""

from __future__ import annotations

import hashlib
from collections.abc import Collection as Several
from typing import NamedTuple

from hubbub.backends import LOCAL
from hubbub.collection import Collection
from hubbub.collection.names import AnswerName
from hubbub.collection.shuffle_route import batch_name, layer_name
from hubbub.collection.shuffled_batch import ShuffledBatch, check_batch
from hubbub.collection.upload import Entry, encode_upload
from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.core.sketch import Sketch
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.service.frames import RefusedRequest
from hubbub.service.open_asks import OpenAsk
from hubbub.service.store.base import AskKey, ShuffledRow
from hubbub.shuffle.onion import OnionKey, missing_checks, peel, wrap

MOST_CHECKS = 1000
"""How many reports of its own a collector makes at once."""


class OpenedBatch(NamedTuple):
    """A batch whose innermost layers are open: its reports, and what else there was.

    Ids are neither in it nor made for it: of a shuffled batch there is one, and it counts once as a whole.
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
        """What is stored of it."""
        n = len(self.reports)
        return ShuffledRow(*key, self.digest, n, self.fakes, self.unreadable, self.repeated, self.checks, self.lost)

    def sketch(self, opened: OpenAsk) -> Sketch:
        """Its reports folded, with the number of fakes among them."""
        return LOCAL.fold([self.reports], opened.ask.mechanism).with_fakes(self.fakes)

    def told(self) -> dict[str, Json]:
        """What the last shuffler is told of it; the same bytes always get the same answer."""
        accepted = len(self.reports)
        return {
            "batch": str(self.answer),
            "accepted": accepted,
            "fakes": self.fakes,
            "unreadable": self.unreadable,
            "repeated": self.repeated,
        }


def open_shuffled(
    batch: ShuffledBatch, body: bytes, collection: Collection, opened: OpenAsk, key: OnionKey, checks: Several[bytes]
) -> OpenedBatch:
    """Open a batch of the last shuffler, or refuse all of it (`RefusedRequest`).

    Every shuffler must have signed what it did, and the numbers must add up. Reports of the collector's own, `checks`,
    are taken out first: they are known by their innermost layer, and are nobody's.
    """
    route, count = collection.shuffle, max(len(batch.onions), 1)
    assert route is not None
    mechanism = opened.ask.mechanism
    check_batch(batch, route, len(route.shufflers), mechanism.report_bytes)
    own = frozenset(checks)
    rest = [onion for onion in batch.onions if onion not in own]
    peeled = peel(rest, key, layer_name(batch.name, opened.ask), place=len(route.shufflers))
    reports, good = opened.opener.open_each(peeled.inside)
    people = len(reports) - batch.fakes
    if people < route.least:
        detail = f"{max(people, 0):,} reports of people; at least {route.least:,}, as is signed"
        raise RefusedRequest("under_minimum", detail, collection=collection.collection_id, count=count)
    return OpenedBatch(
        answer=batch.answer,
        digest=hashlib.sha256(body).digest(),
        reports=reports,
        fakes=batch.fakes,
        unreadable=peeled.unreadable + int((~good).sum()),
        repeated=peeled.repeated,
        checks=len(own),
        lost=missing_checks(batch.onions, own),
    )


def check_onion_key(collection: Collection, key: OnionKey | None) -> None:
    """Refuse to serve a collection whose innermost layers are encrypted to another key.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> check_onion_key(load_collection(EXAMPLE), None)
    """
    if collection.shuffle is None:
        return
    public = None if key is None else key.public.hex()
    if public != collection.shuffle.collector_key:
        given = "no key" if public is None else f"{public[:16]}..."
        raise InvalidValue("onion_key", given, f"that of the collector_key of {collection.name}")


def make_checks(
    collection: Collection, answer: AnswerName, ask: Ask, count: int, rng: Random
) -> list[tuple[bytes, bytes]]:
    """Uploads of the collector's own reports, and each as the last shuffler will hand it on.

    They look like any device's. What they say is drawn like a device's report of any value, and is not counted.

    Parameters
    ----------
    collection, answer, ask
        What they seem to answer.
    count
        How many.
    rng
        Draws them: a secure one, but in tests.
    """
    route, mechanism = collection.shuffle, ask.mechanism
    assert route is not None
    assert isinstance(mechanism, Mechanism)  # devices that remember are not asked where reports are shuffled
    name = layer_name(batch_name(collection.name, collection.version, answer), ask)
    hops = len(route.shufflers)
    made = []
    for _ in range(count):
        report = mechanism.randomize(mechanism.example_values(1), rng).to_bare()
        inner = wrap(report, route.route[hops:], name, place=hops)
        entry = Entry(*answer, rng.bytes(16), wrap(inner, route.route[:hops], name))
        made.append((encode_upload(collection.name, collection.version, [entry], collection.frame_bytes), inner))
    return made
