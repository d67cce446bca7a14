"""What a device sends to an oblivious shuffle: its report, divided into one share for each shuffler.

A report of SOLH or GRR is a number below 2^64 (`hubbub.shuffle.report_numbers`), and its shares are numbers that add up
to it: all but one of them are uniform noise. The last share is encrypted to the server (DGK, `hubbub.shuffle.dgk`), so
that all shufflers together cannot read the report. Here it is encrypted with plain integers of Python: a device needs
no library for it. Every share has the same size, and is sealed to its shuffler.
"""

import secrets
from typing import Protocol

from hubbub.core.errors import DecodeError
from hubbub.core.reports import Words
from hubbub.random.source import Random
from hubbub.shuffle.onion import wrap

NOISE_BITS = 256
"""The bits of the exponent of an encryption's noise: see `hubbub.shuffle.dgk`."""
SHARE_BYTES = 8


class PublicNumbers(Protocol):
    """The public key of the homomorphic encryption, as numbers in hexadecimal digits."""

    @property
    def modulus(self) -> str: ...

    @property
    def g(self) -> str:
        """The generator whose exponent is the message."""
        ...

    @property
    def h(self) -> str:
        """The generator whose exponent is noise."""
        ...

    @property
    def subgroup_bits(self) -> int:
        """The size of the two secret primes that divide the order of h."""
        ...

    @property
    def ciphertext_bytes(self) -> int:
        """The size of a ciphertext."""
        ...


def encrypt(message: int, key: PublicNumbers) -> bytes:
    """A number below 2^64, encrypted to the server."""
    modulus = int(key.modulus, 16)
    noise = pow(int(key.h, 16), secrets.randbits(NOISE_BITS), modulus)
    return (pow(int(key.g, 16), message, modulus) * noise % modulus).to_bytes(key.ciphertext_bytes, "big")


def sealed_shares(number: Words, key: PublicNumbers, shufflers: list[bytes], batch: str, rng: Random) -> bytes:
    """The shares of one report, each sealed to its shuffler, one after the other and all of one size.

    Parameters
    ----------
    number
        The report as a number: an array of one.
    shufflers
        The encryption keys of the shufflers. The last one gets the encrypted share.
    batch
        What the seals are bound to: see `layer_name`.
    rng
        Draws the shares. Secure, except in tests.
    """
    drawn = [int(share) for share in rng.uint64(len(shufflers) - 1)]
    shares = [share.to_bytes(SHARE_BYTES, "little").ljust(key.ciphertext_bytes, b"\0") for share in drawn]
    shares.append(encrypt((int(number[0]) - sum(drawn)) % (1 << 8 * SHARE_BYTES), key))
    sealed = (
        wrap(share, [shuffler], batch, place=at)
        for at, (share, shuffler) in enumerate(zip(shares, shufflers, strict=True))
    )
    return b"".join(sealed)


def read_plain_share(share: bytes, key: PublicNumbers) -> int:
    """The number of a share in the clear; anything but 8 bytes and zeros is refused."""
    if len(share) != key.ciphertext_bytes or any(share[SHARE_BYTES:]):
        raise DecodeError("share", f"{len(share)} bytes", f"a number of {SHARE_BYTES} bytes, followed by zeros")
    return int.from_bytes(share[:SHARE_BYTES], "little")
