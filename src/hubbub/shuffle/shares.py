"""Secret shares: numbers modulo 2^64 as sums of random numbers, one of which may be encrypted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.random import Random

if TYPE_CHECKING:
    from hubbub.shuffle.dgk import DGKPublic

Numbers = NDArray[np.uint64]


def split(numbers: Numbers, parts: int, rng: Random) -> list[Numbers]:
    """Split each number into so many shares that add up to it; all shares but one together are uniform noise."""
    if parts < 2:
        raise InvalidValue("parts", parts, "at least 2")
    drawn = list(rng.uint64(parts - 1, len(numbers)))
    return [*drawn, numbers - np.add.reduce(drawn)]


def most_bytes(count: int, key: DGKPublic | None) -> int:
    """The greatest length of so many shares as bytes."""
    return 1 + count * (8 if key is None else key.ciphertext_bytes)


@dataclass(frozen=True, eq=False)
class SecretShares:
    """A party's shares of a batch: a number for each report, in the clear or encrypted to the server."""

    plain: Numbers | None = None
    encrypted: Sequence[Any] | None = None
    key: DGKPublic | None = None

    def __post_init__(self) -> None:
        if (self.plain is None) == (self.encrypted is None) or (self.encrypted is None) != (self.key is None):
            raise InvalidValue("shares", self, "numbers in the clear, or ciphertexts with their key")

    def __len__(self) -> int:
        return len(self.plain if self.plain is not None else self.encrypted or ())

    def __repr__(self) -> str:
        return f"SecretShares({len(self)} {'in the clear' if self.key is None else 'encrypted'})"

    def __add__(self, other: SecretShares) -> SecretShares:
        if len(self) != len(other):
            raise DecodeError("shares", f"{len(other)} shares", f"{len(self)}, as many as there are reports")
        if self.plain is not None and other.plain is not None:
            return SecretShares(self.plain + other.plain)
        some, others = (self, other) if self.key is not None else (other, self)
        assert some.key is not None
        assert some.encrypted is not None
        if others.plain is not None:
            return SecretShares(encrypted=some.key.add_plain(some.encrypted, others.plain), key=some.key)
        assert others.encrypted is not None
        return SecretShares(encrypted=some.key.add(some.encrypted, others.encrypted), key=some.key)

    def permuted(self, order: NDArray[np.int64]) -> SecretShares:
        """The shares in another order."""
        if self.plain is not None:
            return SecretShares(self.plain[order])
        assert self.encrypted is not None
        return SecretShares(encrypted=[self.encrypted[place] for place in order.tolist()], key=self.key)

    def divided(self, parts: int, rng: Random) -> list[SecretShares]:
        """Split the shares into so many parts; of ciphertexts, one part at random stays encrypted, with fresh noise."""
        if self.plain is not None:
            return [SecretShares(part) for part in split(self.plain, parts, rng)]
        assert self.key is not None
        assert self.encrypted is not None
        drawn = list(rng.uint64(parts - 1, len(self)))
        rest = self.key.rerandomise(self.key.add_plain(self.encrypted, -np.add.reduce(drawn)))
        divided = [SecretShares(part) for part in drawn]
        divided.insert(int(rng.below(parts, 1)[0]), SecretShares(encrypted=rest, key=self.key))
        return divided

    def to_bytes(self) -> bytes:
        """The shares as bytes: one byte for their kind, then the numbers."""
        if self.plain is not None:
            return b"p" + self.plain.astype("<u8").tobytes()
        assert self.key is not None
        assert self.encrypted is not None
        return b"e" + self.key.to_bytes(self.encrypted)

    @staticmethod
    def from_bytes(data: bytes, key: DGKPublic | None, *, devices: bool = False) -> SecretShares:
        """Read shares back; ciphertexts only where there is a key.

        Of `devices`, each of which sent one share, only a bad share is lost; a party that sends a bad one is refused.
        """
        if data[:1] == b"p":
            if (len(data) - 1) % 8:
                raise DecodeError("shares", f"{len(data) - 1} bytes", "8 bytes each")
            return SecretShares(np.frombuffer(data, "<u8", offset=1).astype(np.uint64))
        if data[:1] != b"e" or key is None:
            raise DecodeError("shares", data[:1], "numbers in the clear" + (" or ciphertexts" if key else ""))
        return SecretShares(encrypted=(key.from_devices if devices else key.from_bytes)(data[1:]), key=key)
