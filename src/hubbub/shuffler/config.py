"""The configuration of a shuffler's program: which collection it serves, where, and where its files are."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubbub.client.documents import trusted_keys
from hubbub.core.errors import InvalidValue, check_integer

_TEXTS = ("collection", "collector", "public_key", "key", "store")


@dataclass(frozen=True, kw_only=True)
class HopConfig:
    """What a shuffler of a collection is told. Who else shuffles is in the signed collection.

    Parameters
    ----------
    collection
        The collection's name.
    collector
        The collector's address, where the signed collection and its asks are, and where the last shuffler hands on.
    public_key
        The key that those are signed with: 64 hexadecimal digits.
    key
        The file of this shuffler's private keys, made by `hubbub shuffler own-keys`.
    store
        The file of what it keeps, made if need be.
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
        """Read a file (TOML); its paths are relative to it.

        Example:
            >>> import tempfile
            >>> file = Path(tempfile.mkdtemp()) / "first.toml"
            >>> _ = file.write_text('collection = "themes"\\ncolector = "http://localhost"')
            >>> HopConfig.load(file)
            Traceback (most recent call last):
                ...
            hubbub.core.errors.InvalidValue: colector: got 'http://localhost'; allowed: one of collection, ...
        """
        try:
            given: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidValue("config", str(path), f"a TOML file: {error}") from None
        for name, value in given.items():
            if name not in (*_TEXTS, "host", "port"):
                raise InvalidValue(name, value, f"one of {', '.join((*_TEXTS, 'host', 'port'))}")
        for name in _TEXTS:
            if not isinstance(given.get(name), str) or not given[name]:
                raise InvalidValue(name, given.get(name), "a text")
        if not isinstance(given.get("host", ""), str):
            raise InvalidValue("host", given["host"], "an address")
        check_integer("port", given.get("port", 0), 0, 65535)
        files = {name: path.parent / given[name] for name in ("key", "store")}
        return HopConfig(**{**given, **files, "public_key": trusted_keys(given["public_key"])[0]})
