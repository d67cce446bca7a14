"""A shuffler as a program, and the server's side of a run: from files of shares to one file of reports.

A run succeeds for all parties or for none: a party that fails tells all others, and the server writes nothing unless it
has the shares of all shufflers. If a party is lost, the others start again and wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.private_file import write_private_file
from hubbub.core.random import Random
from hubbub.shuffle.channel import ShuffleAborted
from hubbub.shuffle.config import ShuffleConfig
from hubbub.shuffle.keys import read_private, read_public
from hubbub.shuffle.onion import missing_checks
from hubbub.shuffle.run import ShuffleTerms, check_batch_shares, server_part, shuffler_part
from hubbub.shuffle.shares import SecretShares
from hubbub.shuffle.spread import spread_private, spread_public
from hubbub.shuffle.stored_result import StoredResult, shares_digest
from hubbub.shuffle.tls import TlsChannel

__all__ = ["PartyOutcome", "ShuffleConfig", "receive_batch", "release_reports", "run_shuffler"]

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
