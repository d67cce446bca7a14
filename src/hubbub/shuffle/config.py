"""The configuration file of a party of an oblivious shuffle."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubbub.core.errors import InvalidValue
from hubbub.shuffle.party import Party

_KNOWN = (
    *("me", "parties", "private_key", "encryption_key", "shares", "reports", "checks"),
    *("fakes", "least", "seconds", "attempts", "processes"),
)


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
    checks
        Of the server, a file of reports that it sent itself: a result without them is refused.
    fakes, least
        How many fake reports are added, and how many real ones a batch must have.
    seconds
        How long to wait for anybody.
    attempts
        How often a run is begun again after a party was lost.
    processes
        How many processes share the work on ciphertexts; 0 takes one a core.
    """

    me: int
    parties: tuple[Party, ...]
    private_key: Path
    encryption_key: Path
    shares: Path | None = None
    reports: Path | None = None
    checks: Path | None = None
    fakes: int = 0
    least: int = 1
    seconds: float = 600.0
    attempts: int = 3
    processes: int = 0

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
        for key in given:
            if key not in _KNOWN:
                raise InvalidValue("config", key, f"one of {', '.join(sorted(_KNOWN))}")
        parties = tuple(_party(each, home) for each in _list(given, "parties"))
        if len(parties) < 4:
            raise InvalidValue("parties", len(parties), "at least three shufflers and the server")
        files = {name: home / _text(given, name) for name in ("shares", "reports", "checks") if name in given}
        config = ShuffleConfig(
            me=_integer(given, "me", 0, len(parties) - 1),
            parties=parties,
            private_key=home / _text(given, "private_key"),
            encryption_key=home / _text(given, "encryption_key"),
            **files,
            fakes=_integer(given, "fakes", 0, 1 << 32, 0),
            least=_integer(given, "least", 1, 1 << 32, 1),
            seconds=float(_integer(given, "seconds", 1, 1 << 20, 600)),
            attempts=_integer(given, "attempts", 1, 1000, 3),
            processes=_integer(given, "processes", 0, 1024, 0),
        )
        wanted = {"reports"} if config.me == config.shufflers else {"shares"}
        if files.keys() - {"checks"} != wanted or ("checks" in files and "reports" not in wanted):
            raise InvalidValue("shares", given.get("shares"), "shares for a shuffler, reports for the server")
        return config


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
