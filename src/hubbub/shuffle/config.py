"""The configuration file of a party of an oblivious shuffle."""

from __future__ import annotations

import ssl
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubbub.core.errors import InvalidValue


@dataclass(frozen=True)
class Party:
    """The address of a party, and the certificate that identifies it."""

    host: str
    port: int
    certificate: Path


def tls_context(me: int, parties: Sequence[Party], private_key: Path, *, serving: bool) -> ssl.SSLContext:
    """The TLS settings of a party: TLS 1.3, its own certificate, and no other peers than the listed ones."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if serving else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # a peer is identified by its certificate, which is compared as a whole
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_cert_chain(parties[me].certificate, private_key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidValue("private_key", str(private_key), f"the key of this party's certificate: {error}") from None
    for party in parties:
        context.load_verify_locations(party.certificate)
    return context


def certificate_bytes(path: Path) -> bytes:
    """A certificate in DER, as connections show it."""
    try:
        return ssl.PEM_cert_to_DER_cert(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise InvalidValue("certificate", str(path), f"a certificate in PEM: {error}") from None


_KNOWN = (
    *("me", "parties", "private_key", "encryption_key", "shares", "reports", "checks"),
    *("fakes", "least", "seconds", "attempts", "processes"),
)


@dataclass(frozen=True, kw_only=True)
class ShuffleConfig:
    """The parties of a run, the number of this party, and its files and settings.

    Parameters
    ----------
    me
        The number of this party; the server is the last.
    parties
        Shufflers, then the server.
    private_key
        The key of this party's certificate.
    encryption_key
        The server's DGK key: the public one for shufflers, the private one for the server.
    shares
        For a shuffler: the file with its shares.
    reports
        For the server: the file that the reports are written to.
    checks
        For the server: a file of reports that it sent itself. A result that lacks one of them is refused.
    fakes, least
        How many fake reports are added, and how many real ones a batch must have.
    seconds
        How long to wait for another party.
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
        """The number of shufflers."""
        return len(self.parties) - 1

    @staticmethod
    def load(path: Path) -> ShuffleConfig:
        """Read a configuration file; its paths are relative to it."""
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidValue("config", str(path), f"a TOML file: {error}") from None
        home = path.parent
        for key in settings:
            if key not in _KNOWN:
                raise InvalidValue("config", key, f"one of {', '.join(sorted(_KNOWN))}")
        parties = tuple(_party(table, home) for table in _list(settings, "parties"))
        if len(parties) < 4:
            raise InvalidValue("parties", len(parties), "at least three shufflers and the server")
        files = {name: home / _text(settings, name) for name in ("shares", "reports", "checks") if name in settings}
        config = ShuffleConfig(
            me=_integer(settings, "me", 0, len(parties) - 1),
            parties=parties,
            private_key=home / _text(settings, "private_key"),
            encryption_key=home / _text(settings, "encryption_key"),
            **files,
            fakes=_integer(settings, "fakes", 0, 1 << 32, 0),
            least=_integer(settings, "least", 1, 1 << 32, 1),
            seconds=float(_integer(settings, "seconds", 1, 1 << 20, 600)),
            attempts=_integer(settings, "attempts", 1, 1000, 3),
            processes=_integer(settings, "processes", 0, 1024, 0),
        )
        needed = {"reports"} if config.me == config.shufflers else {"shares"}
        if files.keys() - {"checks"} != needed or ("checks" in files and "reports" not in needed):
            raise InvalidValue("shares", settings.get("shares"), "shares for a shuffler, reports for the server")
        return config


def _party(table: Any, home: Path) -> Party:
    if not isinstance(table, dict) or set(table) != {"host", "port", "certificate"}:
        raise InvalidValue("parties", table, "tables of host, port and certificate")
    return Party(_text(table, "host"), _integer(table, "port", 1, 65535), home / _text(table, "certificate"))


def _list(settings: dict[str, Any], name: str) -> list[Any]:
    if not isinstance(settings.get(name), list):
        raise InvalidValue(name, settings.get(name), "a list")
    return list(settings[name])


def _text(settings: dict[str, Any], name: str) -> str:
    if not isinstance(settings.get(name), str) or not settings[name]:
        raise InvalidValue(name, settings.get(name), "a text")
    return str(settings[name])


def _integer(settings: dict[str, Any], name: str, low: int, high: int, default: int | None = None) -> int:
    value = settings.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidValue(name, value, f"an integer from {low} to {high}")
    return value
