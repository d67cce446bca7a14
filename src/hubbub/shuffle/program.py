"""A shuffler as a program, and the server's side of a run: from files of shares to one file of reports.

A run succeeds for all parties or for none: a party that fails tells all others, and the server writes nothing unless it
has the shares of all shufflers. If a party is lost, the others start again and wait for it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError, HubbubError, InvalidValue
from hubbub.core.private_file import write_private_file
from hubbub.random.source import Random
from hubbub.shuffle.channel import Channel, ShuffleAborted, everyone_but
from hubbub.shuffle.config import ShuffleConfig
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic
from hubbub.shuffle.keys import read_private, read_public, spread_private, spread_public
from hubbub.shuffle.oblivious import CombinedReports, SecretShares, combine, most_bytes, shuffle_with_fakes
from hubbub.shuffle.onion import missing_checks
from hubbub.shuffle.stored_result import DONE, MIXED, RUN_BYTES, SENT, StoredResult, shares_digest
from hubbub.shuffle.tls import TlsChannel

__all__ = ["PartyOutcome", "ShuffleConfig", "receive_batch", "release_reports", "run_shuffler"]

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


Say = Callable[[str], None]


class PartyOutcome(NamedTuple):
    """The outcome of a run for one party: how many shares or reports there were, and the bytes sent and received.

    `dropped` is how many rows the server dropped, because a device sent a ciphertext without a message.
    """

    batch_size: int
    sent_bytes: int
    received_bytes: int
    dropped: int = 0


def run_shuffler(config: ShuffleConfig, *, rng: Random | None = None, say: Say = lambda line: None) -> PartyOutcome:
    """Run a shuffler once: it shuffles its shares with the others and sends them to the server."""
    assert config.shares is not None
    result_path = config.shares.with_name(config.shares.name + ".kept")
    content = _content(config.shares, "shares")
    digest = shares_digest(content)
    with spread_public(read_public(config.encryption_key), config.processes) as key:
        shares = SecretShares.from_bytes(content, key, devices=True)
        check_batch_shares(len(shares), _terms(config), StoredResult.load(result_path, digest))

        def part(channel: TlsChannel) -> tuple[int, int]:
            say(f"{len(shares):,} shares, all parties are there")
            handed = shuffler_part(
                config.me,
                _terms(config),
                channel,
                shares,
                digest=digest,
                stored=StoredResult.load(result_path, digest),
                store=lambda result: result.store(result_path),
                key=key,
                rng=rng or Random(),
            )
            return handed, 0

        return _attempted(config, part, say)


def receive_batch(config: ShuffleConfig, *, say: Say = lambda line: None) -> PartyOutcome:
    """The server's part of a run: wait for the shares of all shufflers, and write the reports."""
    with spread_private(read_private(config.encryption_key), config.processes) as key:

        def part(channel: TlsChannel) -> tuple[int, int]:
            say(f"{config.shufflers} shufflers are there")
            release = partial(release_reports, config)
            combined = server_part(_terms(config), channel, key=key, release=release)
            return len(combined.reports), combined.dropped

        return _attempted(config, part, say)


def _attempted(config: ShuffleConfig, part: Callable[[TlsChannel], tuple[int, int]], say: Say) -> PartyOutcome:
    """Run a part, again if a party is lost, up to the configured number of attempts."""
    for attempt in range(1, config.attempts + 1):
        try:
            with TlsChannel(config.me, config.parties, config.private_key, seconds=config.seconds) as channel:
                try:
                    count, dropped = part(channel)
                    return PartyOutcome(count, channel.sent_bytes, channel.received_bytes, dropped)
                except HubbubError as error:
                    channel.abort(error)
                    raise
        except ShuffleAborted as error:
            if not error.lost or attempt == config.attempts:
                raise
            say(f"{error}; beginning again")
    raise AssertionError("at least one attempt is made")


def release_reports(config: ShuffleConfig, reports: NDArray[np.uint64]) -> None:
    """Write the reports, unless some of the server's own are missing. A file with the same reports is left as it is."""
    assert config.reports is not None
    if config.checks is not None:
        content = _content(config.checks, "checks")
        own = [content[at : at + 8] for at in range(0, len(content), 8)]
        missing = missing_checks((report.tobytes() for report in reports.astype("<u8")), own)
        if missing:
            raise ShuffleAborted(
                "result", f"{missing} of the server's {len(own)} own reports are missing", "all of them"
            )
    content = reports.astype("<u8").tobytes()
    if not write_private_file(config.reports, content) and _content(config.reports, "reports") != content:
        raise ShuffleAborted("reports", str(config.reports), "a file that is not there yet")


def _terms(config: ShuffleConfig) -> ShuffleTerms:
    return ShuffleTerms(config.shufflers, config.fakes, config.least)


def _content(path: Path, field: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidValue(field, str(path), f"a file that can be read: {error.strerror}") from None
