"""Sequential shuffling: reports in layers of encryption, one for each shuffler and the innermost for the server.

Every shuffler takes its layer off, adds fake reports, permutes the batch, and hands it on. As long as one of them does
so and keeps its permutation secret, nobody can link a report to its device. The method is simpler than the oblivious
shuffle and trusts the shufflers more: one that replaces reports or chooses its fakes can change the result. The server
therefore sends reports of its own among those of the devices, and looks for them in the result (`missing_checks`).

Layers are HPKE (RFC 9180): X25519, HKDF-SHA256, AES-128-GCM. A layer is bound to its batch and its place on the route,
and cannot be opened for any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.random.source import Random

LAYER_BYTES = 48
"""The bytes that a layer adds: an ephemeral key and a tag."""
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
_KEY_BYTES = 32


@dataclass(frozen=True, repr=False)
class OnionKey:
    """The key of a shuffler, or of the server: 32 private bytes."""

    private: bytes

    def __post_init__(self) -> None:
        if type(self.private) is not bytes or len(self.private) != _KEY_BYTES:
            raise InvalidValue("private", "bytes that are not shown", f"{_KEY_BYTES} bytes")

    def __repr__(self) -> str:
        return f"OnionKey(public={self.public.hex()})"

    @staticmethod
    def generate() -> OnionKey:
        """A fresh key."""
        return OnionKey(X25519PrivateKey.generate().private_bytes_raw())

    @property
    def public(self) -> bytes:
        """What devices encrypt to."""
        return self._key.public_key().public_bytes_raw()

    @cached_property
    def _key(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(self.private)


class Peeled(NamedTuple):
    """Onions after one layer was taken off, and how many were left out: unreadable ones, and repeated ones."""

    inside: list[bytes]
    unreadable: int
    repeated: int


def wrap(report: bytes, route: Sequence[bytes], batch: str, *, place: int = 0) -> bytes:
    """A report in a layer for each public key of a route: the shufflers' in their order, the server's last.

    Parameters
    ----------
    report
        What the server will read; all reports of a batch have the same size.
    route
        Public keys of 32 bytes.
    batch
        What the layers are bound to: the collection, its version, question and step.
    place
        The place of the first of these keys on the whole route: fakes of a shuffler begin at the next one.
    """
    onion = report
    for number in reversed(range(len(route))):
        try:
            key = X25519PublicKey.from_public_bytes(route[number])
            onion = _SUITE.encrypt(onion, key, info=_info(batch, place + number))
        except ValueError:  # also of a key with which every secret would be the same
            raise InvalidValue("route", route[number], f"public keys of {_KEY_BYTES} bytes") from None
    return onion


def peel(onions: Iterable[bytes], key: OnionKey, batch: str, *, place: int) -> Peeled:
    """Take one layer off. Repeated onions, and onions that cannot be opened, are counted and left out."""
    opened: dict[bytes, bytes | None] = {}
    repeated = 0
    for onion in onions:
        if onion in opened:
            repeated += 1
        else:
            opened[onion] = open_layer(onion, key, batch, place=place)
    inside = [content for content in opened.values() if content is not None]
    return Peeled(inside, len(opened) - len(inside), repeated)


def open_layer(onion: bytes, key: OnionKey, batch: str, *, place: int) -> bytes | None:
    """What is inside of one layer; None if it cannot be opened."""
    try:
        return _SUITE.decrypt(onion, key._key, info=_info(batch, place))
    except (InvalidTag, ValueError):
        return None


def shuffle_onions(
    onions: Iterable[bytes],
    key: OnionKey,
    batch: str,
    *,
    place: int,
    rest: Sequence[bytes],
    fakes: Sequence[bytes] = (),
    least: int,
    rng: Random,
) -> Peeled:
    """A shuffler's turn: take a layer off, add fakes in the remaining layers, and permute.

    Parameters
    ----------
    rest
        The public keys of the shufflers after this one, and the server's.
    fakes
        Reports to add, of the size of the others.
    least
        The fewest reports of a batch; a smaller batch is refused.
    rng
        Draws the permutation. Secure, except in tests.
    """
    peeled = peel(onions, key, batch, place=place)
    if len(peeled.inside) < least:
        raise InvalidValue("batch", "too few reports", f"at least {least}")  # shown to anyone: no number
    if len({len(onion) for onion in peeled.inside}) > 1:
        raise DecodeError("batch", "reports of several sizes", "one size, so that none can be told from the others")
    added = [wrap(fake, rest, batch, place=place + 1) for fake in fakes]
    joined = [*peeled.inside, *added]
    order = np.argsort(rng.uint64(len(joined)), kind="stable")
    return peeled._replace(inside=[joined[at] for at in order.tolist()])


def missing_checks(reports: Iterable[bytes], checks: Iterable[bytes]) -> int:
    """How many of the server's own reports did not come back.

    A shuffler that drops or replaces m of n reports at random takes none of c checks with probability about
    (1 - c/n)^m: of 10,000 reports and 100 checks, replacing 300 is detected in 95 of 100 runs.
    """
    left = Counter(checks)
    left.subtract(reports)
    return sum(count for count in left.values() if count > 0)


def _info(batch: str, place: int) -> bytes:
    return f"hubbub onion 1\0{place}\0{batch}".encode()
