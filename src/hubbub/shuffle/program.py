"""A shuffler as a program, and the server's side of a run: from files of shares to one file of reports.

A run either ends everywhere or nowhere: who sees a failure tells all others, and the server writes nothing unless it
has the shares of all shufflers. The shares that came in are left as they are, and another run can be made of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError, HubbubError, InvalidValue
from hubbub.core.private_file import write_private_file
from hubbub.core.random import Random
from hubbub.shuffle.channel import ShuffleAborted
from hubbub.shuffle.dgk import DGKPublic
from hubbub.shuffle.keys import read_private, read_public
from hubbub.shuffle.peos import combine, shuffle_with_fakes
from hubbub.shuffle.shares import SecretShares
from hubbub.shuffle.tls import Party, TlsChannel

_RESULT = "result"


@dataclass(frozen=True, kw_only=True)
class ShuffleConfig:
    """Who takes part in a run, which of them this program is, and what it needs.

    Parameters
    ----------
    me
        Which party this is; the server is the last.
    parties
        Shufflers, then the server.
    private_key
        The key of this party's certificate.
    encryption_key
        The server's DGK key: the public one for shufflers, the private one for the server.
    shares
        Of a shuffler, the file with its shares.
    reports
        Of the server, the file that the reports are written to.
    fakes, least
        How many fake reports are added, and how many real ones a batch must have.
    seconds
        How long to wait for anybody.
    """

    me: int
    parties: tuple[Party, ...]
    private_key: Path
    encryption_key: Path
    shares: Path | None = None
    reports: Path | None = None
    fakes: int = 0
    least: int = 1
    seconds: float = 600.0

    @property
    def shufflers(self) -> int:
        """How many of the parties shuffle."""
        return len(self.parties) - 1

    @staticmethod
    def load(path: Path) -> ShuffleConfig:
        """Read a configuration file; its paths are relative to it."""
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidValue("config", str(path), f"a TOML file: {error}") from None
        home = path.parent
        known = {"me", "parties", "private_key", "encryption_key", "shares", "reports", "fakes", "least", "seconds"}
        for key in given:
            if key not in known:
                raise InvalidValue("config", key, f"one of {', '.join(sorted(known))}")
        parties = tuple(_party(each, home) for each in _list(given, "parties"))
        if len(parties) < 4:
            raise InvalidValue("parties", len(parties), "at least three shufflers and the server")
        config = ShuffleConfig(
            me=_integer(given, "me", 0, len(parties) - 1),
            parties=parties,
            private_key=home / _text(given, "private_key"),
            encryption_key=home / _text(given, "encryption_key"),
            shares=home / given["shares"] if "shares" in given else None,
            reports=home / given["reports"] if "reports" in given else None,
            fakes=_integer(given, "fakes", 0, 1 << 32, 0),
            least=_integer(given, "least", 1, 1 << 32, 1),
            seconds=float(_integer(given, "seconds", 1, 1 << 20, 600)),
        )
        if (config.me == config.shufflers) != (config.reports is not None) or (config.shares is None) != (
            config.reports is not None
        ):
            raise InvalidValue("shares", given.get("shares"), "shares for a shuffler, reports for the server")
        return config


def run_shuffler(
    config: ShuffleConfig, *, rng: Random | None = None, say: Callable[[str], None] = lambda line: None
) -> int:
    """One run of a shuffler; returns how many shares it handed to the server."""
    key = read_public(config.encryption_key)
    assert config.shares is not None
    shares = SecretShares.from_bytes(config.shares.read_bytes(), key)
    if len(shares) < config.least:
        raise ShuffleAborted("shares", f"{len(shares)} reports", f"a batch of at least {config.least}")
    with _channel(config, key, len(shares)) as channel:
        try:
            say(f"{len(shares):,} shares, all parties are there")
            _agree(config, channel, len(shares))
            mixed = shuffle_with_fakes(
                config.me, config.shufflers, channel, shares, fakes=config.fakes, key=key, rng=rng or Random()
            )
            channel.send(config.shufflers, _RESULT, mixed.to_bytes())
            channel.receive(config.shufflers, "thanks")  # so that nobody leaves before the server has all
        except HubbubError as error:
            channel.abort(str(error))
            raise
    return len(mixed)


def receive_batch(config: ShuffleConfig, *, say: Callable[[str], None] = lambda line: None) -> NDArray[np.uint64]:
    """The server's part of a run: wait for the shares of all shufflers, and write the reports."""
    key = read_private(config.encryption_key)
    assert config.reports is not None
    with _channel(config, key.public, 1 << 24) as channel:
        try:
            came = []
            for shuffler in range(config.shufflers):
                try:
                    came.append(SecretShares.from_bytes(channel.receive(shuffler, _RESULT), key.public))
                except DecodeError as error:
                    raise ShuffleAborted("party", shuffler, f"shares that can be read: {error}") from None
            say(f"{len(came[0]):,} shares of {config.shufflers} shufflers; decrypting")
            reports = combine(came, key)
            if len(reports) < config.least + config.fakes:
                raise ShuffleAborted("batch", f"{len(reports)} reports", f"at least {config.least} and the fakes")
            if not write_private_file(config.reports, reports.astype("<u8").tobytes()):
                raise ShuffleAborted("reports", str(config.reports), "a file that is not there yet")
            for shuffler in range(config.shufflers):
                channel.send(shuffler, "thanks", b"")
        except HubbubError as error:
            channel.abort(str(error))
            raise
    return reports


def _agree(config: ShuffleConfig, channel: TlsChannel, count: int) -> None:
    """Every shuffler says what it was told; they go on only if that is the same."""
    mine = f"{count} {config.fakes} {config.least}".encode()
    others = [shuffler for shuffler in range(config.shufflers) if shuffler != config.me]
    for shuffler in others:
        channel.send(shuffler, "agree", mine)
    for shuffler in others:
        theirs = channel.receive(shuffler, "agree")
        if theirs != mine:
            raise ShuffleAborted(
                "party", shuffler, f"shares, fakes, least as here ({mine.decode()}); it has {theirs!r}"
            )


def _channel(config: ShuffleConfig, key: DGKPublic, count: int) -> TlsChannel:
    most = (count + config.fakes) * key.ciphertext_bytes + 1
    return TlsChannel(config.me, config.parties, config.private_key, most_bytes=most, seconds=config.seconds)


def _party(given: Any, home: Path) -> Party:
    if not isinstance(given, dict) or set(given) != {"host", "port", "certificate"}:
        raise InvalidValue("parties", given, "tables of host, port and certificate")
    return Party(_text(given, "host"), _integer(given, "port", 1, 65535), home / _text(given, "certificate"))


def _list(given: dict[str, Any], name: str) -> list[Any]:
    if not isinstance(given.get(name), list):
        raise InvalidValue(name, given.get(name), "a list")
    return list(given[name])


def _text(given: dict[str, Any], name: str) -> str:
    if not isinstance(given.get(name), str) or not given[name]:
        raise InvalidValue(name, given.get(name), "a text")
    return str(given[name])


def _integer(given: dict[str, Any], name: str, low: int, high: int, default: int | None = None) -> int:
    value = given.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidValue(name, value, f"an integer from {low} to {high}")
    return value
