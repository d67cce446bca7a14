"""What a shuffler keeps of a run that is about to be released, so that its reports are released once.

Whoever sees two runs of the same reports knows the fakes, because they differ. So shares are mixed as often as runs
fail, but sent to the server in one order with one set of fakes alone. A shuffler stores what it is going to send, waits
until all others have stored theirs, notes that it is going to send, and sends. If the run breaks off then, the next one
sends the same again. If somebody has lost what it had stored, the batch is lost: nothing is mixed again that a server
may have seen.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from hubbub.core.errors import DecodeError
from hubbub.core.private_file import write_private_file

RUN_BYTES = 32
_DIGEST_BYTES = 32
_MAGIC = b"hubbub mixed 1\n"
MIXED, SENT, DONE = b"m", b"s", b"d"
"""Stored; stored by everyone, and perhaps sent; heard by the server."""


@dataclass(frozen=True)
class KeptResult:
    """The result of a run over some shares: the run, how far it came, and what goes to the server.

    Parameters
    ----------
    digest
        Of the shares: another batch in the same place is another matter.
    run
        Which run it is, the same for all shufflers.
    state
        MIXED, SENT or DONE.
    body
        What is sent to the server; empty once it was heard.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "0.shares.kept"
        ...     kept = KeptResult(shares_digest(b"shares"), bytes(32), MIXED, b"mixed")
        ...     kept.store(path)
        ...     KeptResult.load(path, shares_digest(b"shares")) == kept, KeptResult.load(path, shares_digest(b"other"))
        (True, None)
    """

    digest: bytes
    run: bytes
    state: bytes
    body: bytes

    def store(self, path: Path) -> None:
        """Write it to disk, whole, in the place of what was there."""
        fresh = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
        write_private_file(fresh, _MAGIC + self.state + self.digest + self.run + self.body)
        os.replace(fresh, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @staticmethod
    def load(path: Path, digest: bytes) -> KeptResult | None:
        """What is kept of these shares, if anything."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        head = len(_MAGIC) + 1 + _DIGEST_BYTES + RUN_BYTES
        if (
            not content.startswith(_MAGIC)
            or len(content) < head
            or content[len(_MAGIC) :][:1] not in (MIXED, SENT, DONE)
        ):
            raise DecodeError("kept", str(path), "a file that this program wrote")
        state, rest = content[len(_MAGIC) :][:1], content[len(_MAGIC) + 1 :]
        kept = KeptResult(rest[:_DIGEST_BYTES], rest[_DIGEST_BYTES : _DIGEST_BYTES + RUN_BYTES], state, content[head:])
        return kept if kept.digest == digest else None


def shares_digest(content: bytes) -> bytes:
    """What tells one file of shares from another.

    Example:
        >>> len(shares_digest(b"shares"))
        32
    """
    return hashlib.sha256(content).digest()
