"""One run of an oblivious shuffle over any channel: a shuffler's part and the server's, from agreeing to the result."""

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
from hubbub.shuffle.kept_result import DONE, MIXED, RUN_BYTES, SENT, KeptResult
from hubbub.shuffle.peos import combine, shuffle_with_fakes
from hubbub.shuffle.shares import SecretShares, most_bytes

AGREE, READY, RESULT, THANKS = "agree", "ready", "result", "thanks"
_AGREE_BYTES = 500
MOST_SHARES = 1 << 32


@dataclass(frozen=True)
class ShuffleTerms:
    """What all parties of a run must have been told alike.

    Example:
        >>> ShuffleTerms(shufflers=3, fakes=10, least=100).shufflers
        3
    """

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
    kept: KeptResult | None,
    keep: Callable[[KeptResult], None],
    key: DGKPublic,
    rng: Random,
) -> int:
    """A shuffler's part of a run; returns how many shares it handed to the server.

    Parameters
    ----------
    me, terms, channel, shares, key, rng
        As of `oblivious_shuffle`.
    digest
        Of the shares.
    kept
        What an earlier run over these shares left behind.
    keep
        Stores what this one leaves behind, before it goes on.
    """
    check_batch_shares(len(shares), terms, kept)
    result = _agreed(me, terms, channel, len(shares), kept, digest)
    if not result.body:
        mixed = shuffle_with_fakes(me, terms.shufflers, channel, shares, fakes=terms.fakes, key=key, rng=rng)
        result = KeptResult(digest, result.run, MIXED, mixed.to_bytes())
        keep(result)
    others = everyone_but(me, range(terms.shufflers))
    for shuffler in others:
        channel.expect(shuffler, READY, RUN_BYTES)
        channel.send(shuffler, READY, result.run)
    for shuffler in others:
        if channel.receive(shuffler, READY) != result.run:
            raise ShuffleAborted("party", shuffler, "to be ready with the same run")
    keep(KeptResult(digest, result.run, SENT, result.body))
    channel.send(terms.shufflers, RESULT, result.body)
    channel.expect(terms.shufflers, THANKS, 0)
    channel.receive(terms.shufflers, THANKS)
    keep(KeptResult(digest, result.run, DONE, b""))
    return len(shares) + terms.fakes


def check_batch_shares(count: int, terms: ShuffleTerms, kept: KeptResult | None) -> None:
    """Refuse a batch that is too small, and one that was released.

    Example:
        >>> check_batch_shares(5, ShuffleTerms(shufflers=3, fakes=0, least=5), None)
    """
    if count < terms.least:
        raise ShuffleAborted("shares", f"{count} reports", f"a batch of at least {terms.least}")
    if kept is not None and kept.state == DONE:
        raise ShuffleAborted("shares", "a batch that the server has heard", "a new one")


def server_part(
    terms: ShuffleTerms, channel: Channel, *, key: DGKPrivate, release: Callable[[NDArray[np.uint64]], None]
) -> NDArray[np.uint64]:
    """The server's part: the reports, which `release` stores or refuses before anybody is thanked."""
    shufflers = range(terms.shufflers)
    for shuffler in shufflers:
        channel.expect(shuffler, AGREE, _AGREE_BYTES)
    told = {shuffler: _read(shuffler, channel.receive(shuffler, AGREE)) for shuffler in shufflers}
    _same(told, told[0], terms)
    count = told[0]["shares"] + terms.fakes
    for shuffler in shufflers:
        channel.expect(shuffler, RESULT, most_bytes(count, key.public))
    came = []
    for shuffler in shufflers:
        try:
            came.append(SecretShares.from_bytes(channel.receive(shuffler, RESULT), key.public))
        except DecodeError as error:
            raise ShuffleAborted("party", shuffler, f"shares that can be read: {error}") from None
        if len(came[-1]) != count:
            raise ShuffleAborted("party", shuffler, f"{count} shares; it sent {len(came[-1])}")
    try:
        reports = combine(came, key)
    except DecodeError as error:
        raise ShuffleAborted("result", "ciphertexts", f"ones that this key decrypts: {error}") from None
    release(reports)
    for shuffler in shufflers:
        channel.send(shuffler, THANKS, b"")
    return reports


def _agreed(
    me: int, terms: ShuffleTerms, channel: Channel, count: int, kept: KeptResult | None, digest: bytes
) -> KeptResult:
    """Tell everyone what one was told and has; returns the run to make, with its result if all have stored it."""
    mine: dict[str, Any] = {"shares": count, "fakes": terms.fakes, "least": terms.least}
    mine |= {"nonce": secrets.token_hex(16), "kept": kept.run.hex() if kept is not None else ""}
    others = everyone_but(me, range(terms.shufflers))
    for shuffler in others:
        channel.expect(shuffler, AGREE, _AGREE_BYTES)
    for party in [*others, terms.shufflers]:
        channel.send(party, AGREE, json.dumps(mine).encode())
    told = {me: mine} | {shuffler: _read(shuffler, channel.receive(shuffler, AGREE)) for shuffler in others}
    _same(told, mine, terms)
    if kept is not None and all(each["kept"] == mine["kept"] for each in told.values()):
        return kept
    if kept is not None and kept.state == SENT:
        raise ShuffleAborted("shares", "a batch that was sent in another run", "a new one: fakes would be known")
    nonces = "".join(told[shuffler]["nonce"] for shuffler in range(terms.shufflers))
    return KeptResult(digest, hashlib.sha256(nonces.encode()).digest(), MIXED, b"")


def _read(shuffler: int, body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
        kinds = {"shares": int, "fakes": int, "least": int, "nonce": str, "kept": str}
        if {name: type(value) for name, value in told.items()} == kinds and 0 <= told["shares"] <= MOST_SHARES:
            return dict(told)
    except (ValueError, AttributeError):
        pass
    raise ShuffleAborted("party", shuffler, "what it was told: shares, fakes, least")


def _same(told: dict[int, dict[str, Any]], mine: dict[str, Any], terms: ShuffleTerms) -> None:
    wanted = {"shares": mine["shares"], "fakes": terms.fakes, "least": terms.least}
    for shuffler, theirs in told.items():
        has = {name: theirs[name] for name in wanted}
        if has != wanted:
            raise ShuffleAborted("party", shuffler, f"{_settings(wanted)}, as here; it has {_settings(has)}")
    check_batch_shares(wanted["shares"], terms, None)


def _settings(values: dict[str, int]) -> str:
    return f"{values['shares']} shares, {values['fakes']} fakes, at least {values['least']}"
