"""The folder with the collector's secrets."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hubbub.collection import Keys
from hubbub.core.errors import InvalidValue
from hubbub.core.private_file import write_private_file
from hubbub.service.auth import token_file
from hubbub.shuffle.onion import OnionKey


class KeyFolder(NamedTuple):
    """The folder with the signing key, the onion key and the token. Each is made on first use.

    Example:
        >>> import tempfile
        >>> folder = KeyFolder(Path(tempfile.mkdtemp()) / "keys")
        >>> folder.keys() == folder.keys(), folder.token() == folder.token()
        (True, True)
    """

    path: Path

    @property
    def key_path(self) -> Path:
        """The file of the signing key."""
        return self.path / "signing.key"

    @property
    def token_path(self) -> Path:
        """The file of the token."""
        return self.path / "admin.token"

    def keys(self) -> Keys:
        """The signing keys."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.key_path.exists():
            Keys.new().save(self.key_path)
        return Keys.load(self.key_path)

    @property
    def onion_path(self) -> Path:
        """The file of the onion key."""
        return self.path / "onion.key"

    def onion_key(self) -> OnionKey:
        """The key that decrypts the innermost layer of shuffled reports."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.onion_path.exists():
            write_private_file(self.onion_path, OnionKey.generate().private.hex().encode() + b"\n")
        try:
            return OnionKey(bytes.fromhex(self.onion_path.read_text(encoding="ascii").strip()))
        except ValueError:
            raise InvalidValue(str(self.onion_path), "a file that is not shown", "64 hexadecimal digits") from None

    def token(self) -> str:
        """The token that opens query routes."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return token_file(self.token_path)
