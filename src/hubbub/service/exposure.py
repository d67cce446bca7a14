"""Warnings of secrets in files that other users can read, and of addresses that other machines can reach."""

from __future__ import annotations

import ipaddress
import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from hubbub.service.logs import log


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
