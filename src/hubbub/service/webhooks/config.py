"""The configuration of webhooks, which is the operator's and not signed, and the signatures of deliveries."""

import base64
import binascii
import hmac
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from hubbub.authoring.toml import TomlTable
from hubbub.collection.time import seconds_of
from hubbub.core.errors import InvalidValue

PREFIX = "whsec_"
_SHORTEST, _LONGEST = 24, 64
_MOST = 2


def signature(secret: bytes, delivery: str, timestamp: int, body: bytes) -> str:
    """The signature of a delivery, for the header `webhook-signature`."""
    signed = b"%s.%d.%s" % (delivery.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()


def read_secrets(field: str, text: str) -> tuple[bytes, ...]:
    """The secrets in a text, one per line; two of them while a receiver changes from one to the other."""
    secrets = tuple(_secret(field, line) for line in text.split())
    _check(field, secrets)
    return secrets


def _secret(field: str, line: str) -> bytes:
    try:
        secret = base64.b64decode(line.removeprefix(PREFIX), validate=True) if line.startswith(PREFIX) else b""
    except (binascii.Error, ValueError):
        secret = b""
    if not _SHORTEST <= len(secret) <= _LONGEST:
        allowed = f"{PREFIX} and the base64 of {_SHORTEST} to {_LONGEST} random bytes"
        raise InvalidValue(field, "a secret that is not shown", allowed)
    return secret


def _check(field: str, secrets: Sequence[bytes]) -> None:
    if not 1 <= len(secrets) <= _MOST:
        raise InvalidValue(field, f"{len(secrets)} secrets", f"one, or {_MOST} while a receiver changes over")


_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")
_LONGEST_TIMEOUT = 60


@dataclass(frozen=True, repr=False)
class Webhook:
    """A receiver of alarm events. Its address and its secrets are never shown: either may give access.

    Parameters
    ----------
    name
        The name in logs, metrics and the store. With another address under the same name, deliveries go on.
    url
        An http or https address.
    secrets
        The keys of the signatures: each delivery is signed with every one.
    collections
        The collections whose alarms are sent; empty for all.
    secret_file
        The file that the secrets were read from, if they were.
    """

    name: str
    url: str
    secrets: tuple[bytes, ...]
    timeout: int = 10
    collections: tuple[str, ...] = ()
    secret_file: Path | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidValue("webhooks", self.name, "a name of a to z, 0 to 9 and -, at most 41 letters")
        try:
            parts = urlsplit(self.url)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            valid = valid and parts.username is None and not parts.fragment and self.url.isascii()
            valid = valid and self.url.isprintable() and " " not in self.url
        except ValueError:
            valid = False
        if not valid:
            scheme, divider, _ = self.url.partition("://")  # without a divider, all of it may be secret
            shown = f"{scheme[:10]}://..." if divider else "an address that is not shown"
            raise InvalidValue(self._at("url"), shown, "an http or https address without a user, a space or a #")
        if not 1 <= self.timeout <= _LONGEST_TIMEOUT:
            raise InvalidValue(self._at("timeout"), self.timeout, f"1 to {_LONGEST_TIMEOUT} seconds")

    def __repr__(self) -> str:
        return f"Webhook(name={self.name!r})"

    @property
    def address(self) -> SplitResult:
        """The parts of the address."""
        return urlsplit(self.url)

    def wants(self, collections: Iterable[str]) -> tuple[str, ...]:
        """The served collections whose alarms are sent. `InvalidValue` if a named collection is not served."""
        served = tuple(collections)
        for name in self.collections:
            if name not in served:
                raise InvalidValue(self._at("collections"), name, f"collections that are served: {', '.join(served)}")
        return self.collections or served

    def _at(self, key: str) -> str:
        return f"webhooks.{self.name}.{key}"


def load_webhooks(path: Path, environ: Mapping[str, str] = os.environ) -> list[Webhook]:
    """The webhooks of a file. Secrets are in files of their own, or in the environment."""
    try:
        file = TomlTable(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValue(str(path), "text that is not TOML", str(error)) from None
    webhooks = [_webhook(name, table, path.parent, environ) for name, table in file.tables("webhooks")]
    file.finish()
    return webhooks


def _webhook(name: str, table: TomlTable, folder: Path, environ: Mapping[str, str]) -> Webhook:
    file, variable = table.take("secret_file", str, ""), table.take("secret_env", str, "")
    if bool(file) == bool(variable):
        raise InvalidValue(table.place, "both or neither of them", "one of secret_file and secret_env")
    if variable and variable not in environ:
        raise InvalidValue(table.at("secret_env"), variable, "a variable of the environment that is set")
    try:
        text = environ[variable] if variable else (folder / file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(table.at("secret_file"), file, f"a file that can be read: {error}") from None
    collections = table.take("collections", list, [])
    webhook = Webhook(
        name=name,
        url=table.take("url", str),
        secrets=read_secrets(table.at("secret_env" if variable else "secret_file"), text),
        timeout=seconds_of(table.at("timeout"), table.take("timeout", str, "10s")),
        collections=tuple(map(str, collections)),
        secret_file=folder / file if file else None,
    )
    table.finish()
    return webhook
