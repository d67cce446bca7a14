"""The stored result of a run, which makes sure that a batch is released once.

A server that sees two runs over the same reports can tell the fakes, because only they differ. Shares may be mixed
again whenever a run fails, but they are sent to the server in one order and with one set of fakes. A shuffler stores
its result, waits until all others have stored theirs, notes that it is going to send, and sends. If the run fails after
that, the next run sends the same result again. If a shuffler has lost its stored result by then, the batch is lost:
reports that the server may have seen are never mixed again.
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
"""The states: stored; stored by everyone and perhaps sent; received by the server."""


@dataclass(frozen=True)
class StoredResult:
    """A shuffler's result of a run over a batch of shares.

    Parameters
    ----------
    digest
        The digest of the shares, by which a result is recognised as that of another batch.
    run
        The random name of the run, the same for all shufflers.
    state
        MIXED, SENT or DONE.
    body
        What is sent to the server; empty once the server has received it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "0.shares.kept"
        ...     result = StoredResult(shares_digest(b"shares"), bytes(32), MIXED, b"mixed")
        ...     result.store(path)
        ...     StoredResult.load(path, shares_digest(b"shares")) == result
        ...     StoredResult.load(path, shares_digest(b"other")) is None
        True
        True
    """

    digest: bytes
    run: bytes
    state: bytes
    body: bytes

    def store(self, path: Path) -> None:
        """Replace the file by this result, atomically, and wait until it is on the disk."""
        fresh = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
        write_private_file(fresh, _MAGIC + self.state + self.digest + self.run + self.body)
        os.replace(fresh, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @staticmethod
    def load(path: Path, digest: bytes) -> StoredResult | None:
        """Read the stored result of the shares with this digest; None if there is none."""
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
        result = StoredResult(
            rest[:_DIGEST_BYTES], rest[_DIGEST_BYTES : _DIGEST_BYTES + RUN_BYTES], state, content[head:]
        )
        return result if result.digest == digest else None


def shares_digest(content: bytes) -> bytes:
    """The SHA-256 digest of a file of shares."""
    return hashlib.sha256(content).digest()
