"""The folder with the collector's secrets, and warnings of secrets that others can read."""

from __future__ import annotations

import ipaddress
import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hubbub.collection import Keys
from hubbub.core.errors import InvalidValue, needs
from hubbub.core.private_file import write_private_file
from hubbub.service.base.logs import log
from hubbub.service.http.problems import token_file
from hubbub.shuffle.onion import OnionKey

if TYPE_CHECKING:
    from hubbub.shuffle.dgk import DGKPrivate


def open_secrets(paths: Iterable[Path]) -> list[str]:
    """A warning for each of some files, and of their folders, that other users may read or change.

    Example:
        >>> import tempfile
        >>> key = Path(tempfile.mkdtemp()) / "signing.key"
        >>> _ = key.write_text("secret")
        >>> key.chmod(0o600)
        >>> open_secrets([key])
        []
        >>> key.chmod(0o640)
        >>> [line.partition(": ")[2] for line in open_secrets([key])]
        ['others than its owner may read it (mode 640); chmod 600 makes it secret']
    """
    if os.name != "posix":
        return []
    lines = []
    for path in paths:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            verb = "read" if mode & 0o044 else "change" if mode & 0o022 else "run"
            lines.append(f"{path}: others than its owner may {verb} it (mode {mode:o}); chmod 600 makes it secret")
        folder = stat.S_IMODE(path.parent.stat().st_mode)
        if folder & 0o022 and not folder & stat.S_ISVTX:
            line = f"{path.parent}: others than its owner may replace what is in it (mode {folder:o})"
            lines += [line] if line not in lines else []
    return lines


def warn_of_open_secrets(*paths: Path | None) -> None:
    """Log a warning for each of some files that other users may read or change, where they exist."""
    for warning in open_secrets(path for path in paths if path is not None and path.exists()):
        log("secret exposed", level=logging.WARNING, detail=warning)


def public_address(host: str) -> bool:
    """Whether an address to listen on can be reached from other machines.

    Example:
        >>> [public_address(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "192.168.0.7")]
        [False, False, False, True, True, True]
    """
    try:
        return not ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host != "localhost"


class KeyFolder(NamedTuple):
    """The folder with the signing key, the onion key, the homomorphic key and the token. Each is made on first use.

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

    @property
    def homomorphic_path(self) -> Path:
        """The file of the homomorphic key."""
        return self.path / "homomorphic.key"

    def homomorphic_key(self) -> DGKPrivate:
        """The key that decrypts shares of reports; making it takes some seconds."""
        with needs("shuffle"):
            from hubbub.shuffle.dgk import DGKPrivate
        from hubbub.shuffle.keys import read_key, write_key

        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.homomorphic_path.exists():
            write_key(DGKPrivate.generate(), self.homomorphic_path)
        return read_key(self.homomorphic_path)

    def token(self) -> str:
        """The token that opens query routes."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return token_file(self.token_path)
