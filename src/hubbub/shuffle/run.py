"""One run of an oblivious shuffle over any channel: the part of a shuffler, and that of the server."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError
from hubbub.core.random import Random
from hubbub.shuffle.channel import Channel, ShuffleAborted, everyone_but
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic
from hubbub.shuffle.peos import CombinedReports, combine, shuffle_with_fakes
from hubbub.shuffle.shares import SecretShares, most_bytes
from hubbub.shuffle.stored_result import DONE, MIXED, RUN_BYTES, SENT, StoredResult

AGREE, READY, RESULT, THANKS = "agree", "ready", "result", "thanks"
_AGREE_BYTES = 500
MOST_SHARES = 1 << 32


@dataclass(frozen=True)
class ShuffleTerms:
    """The settings that must be the same for all parties of a run."""

    shufflers: int
    fakes: int
    least: int


def shuffler_part(
    me: int,
    terms: ShuffleTerms,
    channel: Channel,
    shares: SecretShares,
    *,
    digest: bytes,
    stored: StoredResult | None,
    store: Callable[[StoredResult], None],
    key: DGKPublic,
    rng: Random,
) -> int:
    """A shuffler's part of a run; returns how many shares it handed to the server.

    Parameters
    ----------
    me, terms, channel, shares, key, rng
        As for `oblivious_shuffle`.
    digest
        The digest of the shares.
    stored
        The result that an earlier run over these shares stored, if any.
    store
        Stores the result of this run; called before each step that depends on it.
    """
    check_batch_shares(len(shares), terms, stored)
    result = _agreed(me, terms, channel, len(shares), stored, digest)
    if not result.body:
        mixed = shuffle_with_fakes(me, terms.shufflers, channel, shares, fakes=terms.fakes, key=key, rng=rng)
        result = StoredResult(digest, result.run, MIXED, mixed.to_bytes())
        store(result)
    others = everyone_but(me, range(terms.shufflers))
    for shuffler in others:
        channel.expect(shuffler, READY, RUN_BYTES)
        channel.send(shuffler, READY, result.run)
    for shuffler in others:
        if channel.receive(shuffler, READY) != result.run:
            raise ShuffleAborted("party", shuffler, "to be ready with the same run")
    store(StoredResult(digest, result.run, SENT, result.body))
    channel.send(terms.shufflers, RESULT, result.body)
    channel.expect(terms.shufflers, THANKS, 0)
    channel.receive(terms.shufflers, THANKS)
    store(StoredResult(digest, result.run, DONE, b""))
    return len(shares) + terms.fakes


def check_batch_shares(count: int, terms: ShuffleTerms, stored: StoredResult | None) -> None:
    """Refuse a batch that is too small or was already released."""
    if count < terms.least:
        raise ShuffleAborted("shares", f"{count} reports", f"a batch of at least {terms.least}")
    if stored is not None and stored.state == DONE:
        raise ShuffleAborted("shares", "a batch that the server has received", "a new batch")


def server_part(
    terms: ShuffleTerms, channel: Channel, *, key: DGKPrivate, release: Callable[[NDArray[np.uint64]], None]
) -> CombinedReports:
    """The server's part of a run; returns the reports, once `release` has stored them and has not refused.

    Rows that dishonest devices made unreadable are dropped and counted. If no device's row is left, the run is refused.
    """
    shufflers = range(terms.shufflers)
    for shuffler in shufflers:
        channel.expect(shuffler, AGREE, _AGREE_BYTES)
    settings = {shuffler: _read(shuffler, channel.receive(shuffler, AGREE)) for shuffler in shufflers}
    _same(settings, settings[0], terms)
    count = settings[0]["shares"] + terms.fakes
    for shuffler in shufflers:
        channel.expect(shuffler, RESULT, most_bytes(count, key.public))
    results = []
    for shuffler in shufflers:
        try:
            results.append(SecretShares.from_bytes(channel.receive(shuffler, RESULT), key.public))
        except DecodeError as error:
            raise ShuffleAborted("party", shuffler, f"shares that can be read: {error}") from None
        if len(results[-1]) != count:
            raise ShuffleAborted("party", shuffler, f"{count} shares; it sent {len(results[-1])}")
    combined = combine(results, key)
    if combined.dropped and combined.dropped >= settings[0]["shares"]:
        raise ShuffleAborted(
            "result", f"{combined.dropped} ciphertexts without a message", "ones that this key decrypts"
        )
    release(combined.reports)
    for shuffler in shufflers:
        channel.send(shuffler, THANKS, b"")
    return combined


def _agreed(
    me: int, terms: ShuffleTerms, channel: Channel, count: int, stored: StoredResult | None, digest: bytes
) -> StoredResult:
    """Agree with all parties on the settings and the run; returns the run, with its result if all have stored it."""
    mine: dict[str, Any] = {"shares": count, "fakes": terms.fakes, "least": terms.least}
    mine |= {"nonce": secrets.token_hex(16), "kept": stored.run.hex() if stored is not None else ""}
    others = everyone_but(me, range(terms.shufflers))
    for shuffler in others:
        channel.expect(shuffler, AGREE, _AGREE_BYTES)
    for party in [*others, terms.shufflers]:
        channel.send(party, AGREE, json.dumps(mine).encode())
    settings = {me: mine} | {shuffler: _read(shuffler, channel.receive(shuffler, AGREE)) for shuffler in others}
    _same(settings, mine, terms)
    if stored is not None and all(theirs["kept"] == mine["kept"] for theirs in settings.values()):
        return stored
    if stored is not None and stored.state == SENT:
        raise ShuffleAborted(
            "shares", "a batch that was sent in another run", "a new batch: sent twice, its fakes would be known"
        )
    nonces = "".join(settings[shuffler]["nonce"] for shuffler in range(terms.shufflers))
    return StoredResult(digest, hashlib.sha256(nonces.encode()).digest(), MIXED, b"")


def _read(shuffler: int, body: bytes) -> dict[str, Any]:
    try:
        settings = json.loads(body)
        kinds = {"shares": int, "fakes": int, "least": int, "nonce": str, "kept": str}
        if {name: type(value) for name, value in settings.items()} == kinds and 0 <= settings["shares"] <= MOST_SHARES:
            return dict(settings)
    except (ValueError, AttributeError):
        pass
    raise ShuffleAborted("party", shuffler, "its settings: shares, fakes, least")


def _same(settings: dict[int, dict[str, Any]], mine: dict[str, Any], terms: ShuffleTerms) -> None:
    expected = {"shares": mine["shares"], "fakes": terms.fakes, "least": terms.least}
    for shuffler, theirs in settings.items():
        has = {name: theirs[name] for name in expected}
        if has != expected:
            raise ShuffleAborted("party", shuffler, f"{_settings(expected)}, as here; it has {_settings(has)}")
    check_batch_shares(expected["shares"], terms, None)


def _settings(values: dict[str, int]) -> str:
    return f"{values['shares']} shares, {values['fakes']} fakes, at least {values['least']}"
