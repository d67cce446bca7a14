"""The folder with what must stay secret."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hubbub.collection import Keys
from hubbub.service.auth import token_file


class KeyFolder(NamedTuple):
    """The folder with what must stay secret: the signing key and the token. Both are made on first use.

    Example:
        >>> import tempfile
        >>> folder = KeyFolder(Path(tempfile.mkdtemp()) / "keys")
        >>> folder.keys() == folder.keys(), folder.token() == folder.token()
        (True, True)
    """

    path: Path

    @property
    def key_path(self) -> Path:
        """Where the signing key is."""
        return self.path / "signing.key"

    @property
    def token_path(self) -> Path:
        """Where the token is."""
        return self.path / "admin.token"

    def keys(self) -> Keys:
        """The signing keys."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.key_path.exists():
            Keys.new().save(self.key_path)
        return Keys.load(self.key_path)

    def token(self) -> str:
        """The token that opens query routes."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return token_file(self.token_path)
