"""DGK: public-key encryption of numbers modulo 2^64 that can be added while they are encrypted.

The cryptosystem of Damgard, Geisler and Kroigaard (2007, corrected 2009), with a plaintext space of 2^64 and decryption
by the method of Pohlig and Hellman. A modulus n = p q has two subgroups: g generates one of order u v with u = 2^64
and v = v_p v_q, h one of order v. A message m is encrypted as g^m h^r mod n. Multiplying ciphertexts adds messages
modulo u; multiplying by a fresh h^r makes a ciphertext that nobody can recognise, not even who holds the key.

What it rests on, and what it does not do:

- Who cannot factor n must also be unable to tell the subgroup of h from that of g (subgroup indistinguishability): a
  stronger assumption than factoring alone. 3072 bits of n and 256 bits of v_p and v_q are the default.
- It is malleable by design: whoever has a ciphertext can change its message blindly. Integrity comes from elsewhere.
- Decryption raises to the secret v_p by a power function whose time does not depend on it. Encryption multiplies
  entries of tables that are chosen by the digits of a secret, one-time exponent: other programs on the same processor
  that can watch its cache are not defended against.
- A ciphertext that is no element of the group is refused, and one whose decryption has no message is told apart. What a
  device sends is never refused as a whole batch: only its own row is lost (`from_devices`, `messages`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError, InvalidValue, needs

with needs("shuffle"):
    import gmpy2

BITS = 64
"""Messages are integers modulo 2^64."""
MODULUS_BITS = 3072
SUBGROUP_BITS = 256
LEAST_MODULUS_BITS = 2048
_SPACE = 1 << BITS
_WINDOW = 8
_DIGITS = 1 << _WINDOW
_NO_MESSAGE = 2  # any fixed number: a chance of 2^-700 that it is in the subgroup of g modulo p
_MARGIN = 128  # bits of an exponent beyond the order of h: what it selects is uniform but for 2^-128


@dataclass(frozen=True)
class DGKPublic:
    """What is needed to encrypt, to add, and to make ciphertexts unrecognisable.

    Parameters
    ----------
    modulus, g, h
        The modulus and the two generators.
    subgroup_bits
        The size of v_p and of v_q.
    """

    modulus: int
    g: int
    h: int
    subgroup_bits: int = SUBGROUP_BITS

    def __post_init__(self) -> None:
        if self.modulus.bit_length() < LEAST_MODULUS_BITS:
            raise InvalidValue("modulus", f"{self.modulus.bit_length()} bits", f"at least {LEAST_MODULUS_BITS} bits")
        for name in ("g", "h"):
            if not 1 < getattr(self, name) < self.modulus or gmpy2.gcd(getattr(self, name), self.modulus) != 1:
                raise InvalidValue(name, "a number", "an element of the group other than 1")

    @property
    def ciphertext_bytes(self) -> int:
        """The size of a ciphertext."""
        return -(-self.modulus.bit_length() // 8)

    @cached_property
    def _tables(self) -> tuple[_Powers, _Powers]:
        noise = 2 * self.subgroup_bits + _MARGIN
        return _Powers(self.g, self.modulus, BITS), _Powers(self.h, self.modulus, noise)

    def encrypt(self, messages: Iterable[int] | NDArray[np.uint64]) -> list[Any]:
        """Ciphertexts of messages, each with noise of its own."""
        power_g, power_h = self._tables
        return [
            power_g(int(message)) * power_h(secrets.randbits(power_h.bits)) % self._n for message in _plain(messages)
        ]

    def add(self, ciphertexts: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """Ciphertexts of the sums."""
        _same_length(ciphertexts, others)
        return [a * b % self._n for a, b in zip(ciphertexts, others, strict=True)]

    def add_plain(self, ciphertexts: Sequence[Any], messages: NDArray[np.uint64]) -> list[Any]:
        """Ciphertexts of the sums with known numbers; the noise stays what it was."""
        _same_length(ciphertexts, messages)
        power_g, _ = self._tables
        return [a * power_g(int(message)) % self._n for a, message in zip(ciphertexts, _plain(messages), strict=True)]

    def rerandomise(self, ciphertexts: Sequence[Any]) -> list[Any]:
        """Ciphertexts of the same messages that nobody can match with these."""
        _, power_h = self._tables
        return [a * power_h(secrets.randbits(power_h.bits)) % self._n for a in ciphertexts]

    def to_bytes(self, ciphertexts: Sequence[Any]) -> bytes:
        """Ciphertexts as bytes, all of one size."""
        size = self.ciphertext_bytes
        return b"".join(int(a).to_bytes(size, "big") for a in ciphertexts)

    def from_bytes(self, data: bytes) -> list[Any]:
        """Read ciphertexts back; what is not in the group is refused."""
        read = self._numbers(data)
        product = gmpy2.mpz(1)
        for cipher in read:
            if not 0 < cipher < self._n:
                raise DecodeError("ciphertexts", "a number outside of the group", "numbers from 1 to the modulus")
            product = product * cipher % self._n
        if gmpy2.gcd(product, self._n) != 1:
            raise DecodeError("ciphertexts", "a factor of the modulus", "elements of the group")
        return read

    def from_devices(self, data: bytes) -> list[Any]:
        """Read the ciphertexts of many devices; what is not in the group is replaced by an element without a message.

        The server drops such a row and counts it: no device can spoil the rows of others.
        """
        read = self._numbers(data)
        return [a if 0 < a < self._n and gmpy2.gcd(a, self._n) == 1 else gmpy2.mpz(_NO_MESSAGE) for a in read]

    def _numbers(self, data: bytes) -> list[Any]:
        size = self.ciphertext_bytes
        if len(data) % size:
            raise DecodeError("ciphertexts", f"{len(data)} bytes", f"{size} bytes each")
        view = memoryview(data)
        return [gmpy2.mpz(int.from_bytes(view[at : at + size], "big")) for at in range(0, len(data), size)]

    @cached_property
    def _n(self) -> Any:
        return gmpy2.mpz(self.modulus)


@dataclass(frozen=True, repr=False)
class DGKPrivate:
    """The key that decrypts: one prime factor, and the order of h modulo it."""

    public: DGKPublic
    p: int
    v_p: int

    def __repr__(self) -> str:
        return f"DGKPrivate(public={self.public.modulus.bit_length()} bits)"

    @staticmethod
    def generate(bits: int = MODULUS_BITS, subgroup_bits: int = SUBGROUP_BITS) -> DGKPrivate:
        """A fresh key: some seconds of looking for primes."""
        if bits < LEAST_MODULUS_BITS or bits % 2:
            raise InvalidValue("bits", bits, f"an even number of at least {LEAST_MODULUS_BITS}")
        if not 160 <= subgroup_bits <= bits // 2 - 2 * BITS:
            raise InvalidValue("subgroup_bits", subgroup_bits, f"160 to {bits // 2 - 2 * BITS}")
        v_p, v_q = _prime(subgroup_bits), _prime(subgroup_bits)
        while True:
            p, q = _prime_with(v_p, bits // 2), _prime_with(v_q, bits // 2)
            if (p * q).bit_length() == bits and v_p != v_q and p % v_q != 1 and q % v_p != 1:
                break
        g = _crt(_of_order(_SPACE * v_p, (2, v_p), p), p, _of_order(_SPACE * v_q, (2, v_q), q), q)
        h = _crt(_of_order(v_p, (v_p,), p), p, _of_order(v_q, (v_q,), q), q)
        return DGKPrivate(DGKPublic(p * q, g, h, subgroup_bits), p, v_p)

    def decrypt(self, ciphertexts: Sequence[Any]) -> NDArray[np.uint64]:
        """The messages; refuses ciphertexts without one."""
        messages = self.messages(ciphertexts)
        if None in messages:
            raise DecodeError("ciphertexts", "a number without a message", "ciphertexts of this key")
        return np.array(messages, dtype=np.uint64)

    def messages(self, ciphertexts: Sequence[Any]) -> list[int | None]:
        """The message of each ciphertext; None for an element of the group without one, which anybody can make."""
        return [self._message(cipher) for cipher in ciphertexts]

    @cached_property
    def _p(self) -> Any:
        return gmpy2.mpz(self.p)

    @cached_property
    def _roots(self) -> tuple[dict[Any, int], list[list[Any]]]:
        """The places of the 256th roots of one, and the inverse powers that take a known digit away."""
        base = gmpy2.powmod_sec(gmpy2.mpz(self.public.g), self.v_p, self._p)  # of order 2^64
        root = gmpy2.powmod(base, 1 << BITS - _WINDOW, self._p)
        places = {gmpy2.powmod(root, digit, self._p): digit for digit in range(_DIGITS)}
        inverse = gmpy2.invert(base, self._p)
        away = []
        for place in range(0, BITS, _WINDOW):
            step = gmpy2.powmod(inverse, 1 << place, self._p)
            away.append([gmpy2.powmod(step, digit, self._p) for digit in range(_DIGITS)])
        return places, away

    def _message(self, cipher: Any) -> int | None:
        """Eight bits at a time, the lowest first: what is left of the message decides a root of one.

        None where it is no root of one: the ciphertext has no message.
        """
        places, away = self._roots
        rest = gmpy2.powmod_sec(cipher, self.v_p, self._p)
        message = 0
        for number, place in enumerate(range(0, BITS, _WINDOW)):
            lifted = rest
            for _ in range(BITS - _WINDOW - place):
                lifted = lifted * lifted % self._p
            digit = places.get(lifted)
            if digit is None:
                return None
            rest = rest * away[number][digit] % self._p
            message |= digit << place
        return message


class _Powers:
    """Powers of one base, from tables of its powers: a multiplication for every eight bits of the exponent."""

    def __init__(self, base: int, modulus: int, bits: int) -> None:
        self.bits = bits
        self._modulus = gmpy2.mpz(modulus)
        self._rows = []
        step = gmpy2.mpz(base)
        for _ in range(-(-bits // _WINDOW)):
            row = [gmpy2.mpz(1)]
            for _ in range(_DIGITS - 1):
                row.append(row[-1] * step % self._modulus)
            self._rows.append(row)
            step = row[-1] * step % self._modulus

    def __call__(self, exponent: int) -> Any:
        power, modulus = self._rows[0][exponent & (_DIGITS - 1)], self._modulus
        for row in self._rows[1:]:
            exponent >>= _WINDOW
            digit = exponent & (_DIGITS - 1)
            if digit:
                power = power * row[digit] % modulus
        return power


def _plain(messages: Iterable[int] | NDArray[np.uint64]) -> list[int]:
    numbers = [int(message) for message in messages]
    for number in numbers:
        if not 0 <= number < _SPACE:
            raise InvalidValue("messages", number, "integers from 0 to 2^64 - 1")
    return numbers


def _same_length(some: Sequence[Any] | NDArray[Any], others: Sequence[Any] | NDArray[Any]) -> None:
    if len(some) != len(others):
        raise InvalidValue("ciphertexts", f"{len(some)} and {len(others)}", "as many of the one as of the other")


def _prime(bits: int) -> int:
    while True:
        candidate = secrets.randbits(bits) | 1 | 1 << bits - 1
        if gmpy2.is_prime(candidate, 40):
            return candidate


def _prime_with(factor: int, bits: int) -> int:
    """A prime p of a given number of bits, with 2^64 and the factor in p - 1."""
    base = _SPACE * factor
    low, high = (3 << bits - 2) // base + 1, (1 << bits) // base  # products of two such primes have all their bits
    while True:
        candidate = base * (low + secrets.randbelow(high - low)) + 1
        if gmpy2.is_prime(candidate, 40):
            return candidate


def _of_order(order: int, primes: tuple[int, ...], p: int) -> int:
    """An element modulo p of exactly this order, whose prime factors are given."""
    while True:
        element = gmpy2.powmod(secrets.randbelow(p - 3) + 2, (p - 1) // order, p)
        if all(gmpy2.powmod(element, order // prime, p) != 1 for prime in primes):
            return int(element)


def _crt(a: int, p: int, b: int, q: int) -> int:
    """The number modulo p q that is a modulo p and b modulo q."""
    return int(a + p * ((b - a) * gmpy2.invert(p, q) % q))
