"""The configuration of a shuffler's program, and its two private keys."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubbub.client.documents import trusted_keys
from hubbub.collection.sealing import Keys
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.private_file import write_private_file
from hubbub.shuffle.onion import OnionKey


@dataclass(frozen=True)
class ShufflerKeys:
    """The private keys of a shuffler."""

    encryption: OnionKey
    signing: Keys

    @staticmethod
    def generate() -> ShufflerKeys:
        """Fresh keys."""
        return ShufflerKeys(OnionKey.generate(), Keys.new())

    def public(self) -> dict[str, str]:
        """The public halves, as they stand in a collection's file."""
        return {"encryption_key": self.encryption.public.hex(), "signing_key": self.signing.public.hex()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the keys to a new file that only its owner may read."""
        secret = {"encryption": self.encryption.private.hex(), "signing": self.signing.private.hex()}
        if not write_private_file(Path(path), json.dumps(secret).encode() + b"\n"):
            raise InvalidValue("key", str(path), "a file that is not there yet")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> ShufflerKeys:
        """Read them back."""
        try:
            secret = json.loads(Path(path).read_text(encoding="ascii"))
            private = bytes.fromhex(secret["encryption"]), bytes.fromhex(secret["signing"])
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidValue("key", str(path), "a file made by `hubbub shuffler own-keys`") from None
        return ShufflerKeys(OnionKey(private[0]), Keys(private[1]))


_TEXTS = ("collection", "collector", "public_key", "key", "store")


@dataclass(frozen=True, kw_only=True)
class HopConfig:
    """The settings of a shuffler of a collection. The other shufflers are listed in the signed collection.

    Parameters
    ----------
    collector
        The address of the collector, which serves the signed collection and its asks, and takes the last batches.
    public_key
        The key with which these are signed: 64 hexadecimal digits.
    key
        The file of this shuffler's private keys, made by `hubbub shuffler own-keys`.
    store
        The file of the shuffler's store; created if it does not exist.
    host, port
        Where it listens; port 0 takes a free one.
    """

    collection: str
    collector: str
    public_key: bytes
    key: Path
    store: Path
    host: str = "127.0.0.1"
    port: int = 8001

    @staticmethod
    def load(path: Path) -> HopConfig:
        """Read a file (TOML); its paths are relative to it."""
        try:
            settings: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidValue("config", str(path), f"a TOML file: {error}") from None
        for name, value in settings.items():
            if name not in (*_TEXTS, "host", "port"):
                raise InvalidValue(name, value, f"one of {', '.join((*_TEXTS, 'host', 'port'))}")
        for name in _TEXTS:
            if not isinstance(settings.get(name), str) or not settings[name]:
                raise InvalidValue(name, settings.get(name), "a text")
        if not isinstance(settings.get("host", ""), str):
            raise InvalidValue("host", settings["host"], "an address")
        check_integer("port", settings.get("port", 0), 0, 65535)
        files = {name: path.parent / settings[name] for name in ("key", "store")}
        return HopConfig(**{**settings, **files, "public_key": trusted_keys(settings["public_key"])[0]})
