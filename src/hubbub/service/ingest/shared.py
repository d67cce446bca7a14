"""Batches of shares from shufflers: checks their signatures, decrypts the results and adds them up."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collection import SignedCollection
from hubbub.collection.names import AnswerName
from hubbub.collection.shuffle_route import ObliviousRoute, batch_name, layer_name
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Words
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.random.source import Random
from hubbub.service.base.limits import RefusedRequest
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.ingest.shuffled import OpenedBatch
from hubbub.shuffle.device_shares import sealed_shares
from hubbub.shuffle.onion import OnionKey, missing_checks, open_layer
from hubbub.shuffle.report_numbers import from_numbers, to_numbers
from hubbub.wire.shares import HASH_BYTES, SharedBatch, check_shared, seal_name
from hubbub.wire.upload import Entry, encode_upload

if TYPE_CHECKING:
    from hubbub.shuffle.dgk import DGKPrivate

_MANY = 2000  # reports that are worth processes of their own


def open_shared(
    batch: SharedBatch,
    body: bytes,
    collection: SignedCollection,
    ask: OpenAsk,
    keys: tuple[OnionKey, DGKPrivate],
    checks: Sequence[bytes],
) -> OpenedBatch:
    """Decrypt a batch of shares, or refuse all of it (`RefusedRequest`, `DecodeError`).

    A report that cannot be decrypted is left out and counted. The collector's own reports, `checks`, are recognised by
    their numbers, and taken out.
    """
    route = collection.shuffle
    if not isinstance(route, ObliviousRoute):
        raise DecodeError("batch", batch.name, "a batch of a collection whose reports are divided into shares")
    check_shared(batch, route)
    try:
        numbers, dropped = _numbers(batch, route, keys)
    except InvalidValue as error:
        raise DecodeError("result", str(error.value), error.allowed) from None
    came = [number.tobytes() for number in numbers.astype("<u8")]
    lost, own = missing_checks(came, checks), Counter(checks)
    kept = np.ones(len(came), dtype=bool)
    for row, number in enumerate(came):
        if own[number]:
            own[number] -= 1
            kept[row] = False
    mechanism = ask.ask.mechanism
    assert isinstance(mechanism, Mechanism)  # a fresh report each time: see `check`
    reports = from_numbers(mechanism, numbers[kept])
    if len(reports) - route.fakes < route.least:
        # Without the number: the first shuffler shows the reason to anyone.
        detail = f"too few reports of people; at least {route.least:,}, as is signed"
        count = max(len(numbers), 1)
        raise RefusedRequest("under_minimum", detail, collection=collection.collection_id, count=count)
    return OpenedBatch(
        answer=batch.answer,
        digest=hashlib.sha256(body).digest(),
        reports=reports,
        fakes=route.fakes,
        unreadable=batch.incomplete + dropped,
        repeated=0,
        checks=len(checks),
        lost=lost,
    )


def _numbers(batch: SharedBatch, route: ObliviousRoute, keys: tuple[OnionKey, DGKPrivate]) -> tuple[Words, int]:
    """The reports as numbers, real and fake ones together, and how many could not be decrypted."""
    from hubbub.shuffle.keys import spread_private
    from hubbub.shuffle.oblivious import combine

    parts, onion_key, key = [], *keys
    for place, result in enumerate(batch.results):
        name = seal_name(batch.name, place, len(route.shufflers), "result")
        content = open_layer(result.sealed, onion_key, name, place=0)
        if content is None or content[:HASH_BYTES] != result.statement.lists:
            raise DecodeError("result", f"of shuffler {place}", "one that this collector can decrypt")
        parts.append(content[HASH_BYTES:])
    count = batch.rows + route.fakes
    if count < _MANY:
        return combine(parts, count, key)
    with spread_private(key) as spread:
        return combine(parts, count, spread)


def check_homomorphic_key(collection: SignedCollection, key: DGKPrivate | None) -> None:
    """Refuse to serve a collection whose shares are encrypted to another key."""
    route = collection.shuffle
    if not isinstance(route, ObliviousRoute):
        return
    public = None if key is None else (key.public.modulus, key.public.g, key.public.h)
    if public != tuple(int(getattr(route.homomorphic_key, name), 16) for name in ("modulus", "g", "h")):
        shown = "no key" if key is None else "another key"
        raise InvalidValue("homomorphic_key", shown, f"that of the homomorphic_key of {collection.name}")


def make_share_checks(
    collection: SignedCollection, answer: AnswerName, ask: Ask, count: int, rng: Random
) -> list[tuple[list[bytes], bytes]]:
    """Make uploads of the collector's own reports, one for each shuffler, and the number of each report.

    The uploads look like those of devices. Their reports are drawn as for some value, and are not counted.
    """
    route, mechanism = collection.shuffle, ask.mechanism
    assert isinstance(route, ObliviousRoute)
    assert isinstance(mechanism, Mechanism)
    name = layer_name(batch_name(collection.name, collection.version, answer), ask)
    shufflers = [bytes.fromhex(shuffler.encryption_key) for shuffler in route.shufflers]
    checks = []
    for _ in range(count):
        number = to_numbers(mechanism, mechanism.randomize(mechanism.example_values(1), rng), rng)
        sealed = sealed_shares(number, route.homomorphic_key, shufflers, name, rng)
        size, report_id = len(sealed) // len(shufflers), rng.bytes(16)
        entries = [Entry(*answer, report_id, sealed[at : at + size]) for at in range(0, len(sealed), size)]
        head = (collection.name, collection.version)
        uploads = [encode_upload(*head, [entry], collection.frame_bytes) for entry in entries]
        checks.append((uploads, number.astype("<u8").tobytes()))
    return checks
