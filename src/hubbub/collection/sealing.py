"""Signed documents: how they are sealed and opened, and their formats. Devices read no unsigned documents.

A document is checked as it was signed, byte for byte, and only then upgraded from an older format.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.migrations import Versions
from hubbub.core.spec import SAFE, Json, canonical

_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, repr=False)
class Keys:
    """An Ed25519 key pair: 32 private bytes, and the 32 public ones that devices are built with."""

    private: bytes

    def __post_init__(self) -> None:
        if type(self.private) is not bytes or len(self.private) != 32:
            raise InvalidValue("private", "bytes that are not shown", "32 bytes")

    def __repr__(self) -> str:
        return f"Keys(public={self.public.hex()})"

    @property
    def public(self) -> bytes:
        return Ed25519PrivateKey.from_private_bytes(self.private).public_key().public_bytes_raw()

    @staticmethod
    def new() -> Keys:
        """A fresh pair."""
        return Keys(Ed25519PrivateKey.generate().private_bytes_raw())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Keys:
        """Read a pair from its file: 64 hexadecimal digits."""
        text = Path(path).read_text(encoding="ascii").strip()
        if len(text) != 64 or not set(text) <= _HEX:
            raise InvalidValue(str(path), "a file that is not shown", "64 hexadecimal digits")
        return Keys(bytes.fromhex(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the pair to a new file that only its owner may read."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(self.private.hex() + "\n")


def sign(payload: bytes, private: bytes) -> bytes:
    """The 64 bytes of a signature."""
    return Ed25519PrivateKey.from_private_bytes(private).sign(payload)


def verify(payload: bytes, signature: bytes, public: bytes) -> bool:
    """Whether a signature is that of the key's holder, of exactly this payload."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, payload)
    except (InvalidSignature, ValueError):
        return False
    return True


def seal(spec: Json, private: bytes) -> dict[str, str]:
    """A signed document: the canonical JSON of a spec, the public key, the signature."""
    payload, pair = canonical(spec), Ed25519PrivateKey.from_private_bytes(private)
    return {
        "payload": payload,
        "key": pair.public_key().public_bytes_raw().hex(),
        "signature": pair.sign(payload.encode()).hex(),
    }


def open_sealed(document: object, public: bytes | Iterable[bytes]) -> Any:
    """The content of a sealed document. It must be signed with a trusted key, and its JSON must be canonical."""
    trusted = {public} if isinstance(public, bytes) else set(public)
    if not isinstance(document, Mapping) or set(document) != {"payload", "key", "signature"}:
        raise DecodeError("document", document, "exactly payload, key and signature")
    payload = document["payload"]
    if not isinstance(payload, str):
        raise DecodeError("payload", payload, "canonical JSON as text")
    key, signature = _bytes("key", document["key"], 32), _bytes("signature", document["signature"], 64)
    if key not in trusted:
        raise DecodeError("key", key.hex()[:16] + "...", "a trusted key")
    try:
        raw = payload.encode()
    except UnicodeEncodeError:
        raise DecodeError("payload", payload[:40], "text of whole characters") from None
    if not verify(raw, signature, key):
        raise DecodeError("signature", signature.hex()[:16] + "...", "the key's signature of the payload")
    try:
        spec = json.loads(payload, parse_int=_number)
        spelling = canonical(spec)
    except (ValueError, RecursionError) as error:
        raise DecodeError("payload", payload[:40], f"JSON ({error})") from None
    if spelling != payload:  # one thing has one spelling: no key twice, no 1.0 for 1
        raise DecodeError("payload", payload[:40], "JSON in its canonical spelling")
    return spec


def tag_of(document: Mapping[str, str]) -> str:
    """The ETag of a signed document: a hash of the payload and the public key, and of nothing else.

    A client computes it from its stored document instead of returning what the server sent: a server that chose tags,
    signatures or spaces could recognise devices by them.
    """
    signed = f"{document['key']}:{document['payload']}"
    return f'"{hashlib.sha256(signed.encode()).hexdigest()[:32]}"'


def _number(digits: str) -> int | float:
    """Read digits as an integer below 2^53, and as a float above: canonical JSON writes larger integers as text."""
    number = int(digits)
    return number if abs(number) < SAFE else float(digits)


def _bytes(field: str, value: object, size: int) -> bytes:
    if not isinstance(value, str) or len(value) != 2 * size or not set(value) <= _HEX:
        raise DecodeError(field, value, f"{2 * size} hexadecimal digits")
    return bytes.fromhex(value)


Upgrade: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Upgrades a document to the next format, with its number."""


@dataclass(frozen=True)
class DocumentFormat(Versions[Upgrade]):
    """The formats of one kind of document."""

    def upgrade(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of the document in the present format."""
        if not isinstance(document, Mapping):
            raise InvalidValue(self.name, document, "an object")
        upgraded = deepcopy(dict(document))
        for step in self.since(upgraded.get("format")):
            upgraded = step(upgraded)
        return upgraded


COLLECTION = DocumentFormat("collection", 1)
"""Collections, as they are signed and stored."""
ASKS = DocumentFormat("asks", 1)
"""Documents of asks."""
