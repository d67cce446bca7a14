"""The two private keys of a shuffler: one opens its layers, the other signs the batches that it hands on."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from hubbub.collection.sealing import Keys
from hubbub.core.errors import InvalidValue
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
