"""DGK: public-key encryption of numbers modulo 2^64 that can be added while they are encrypted.

The cryptosystem of Damgard, Geisler and Kroigaard (2007, corrected 2009), with a plaintext space of 2^64 and decryption
by the method of Pohlig and Hellman. A modulus n = p q has two subgroups: g generates one of order u v with u = 2^64
and v = v_p v_q, h one of order v. A message m is encrypted as g^m h^r mod n. Multiplying ciphertexts adds messages
modulo u; multiplying by a fresh h^r makes a ciphertext that nobody can recognise, not even who holds the key.

What it rests on, and what it does not do:

- Who cannot factor n must also be unable to tell the subgroup of h from that of g (subgroup indistinguishability): a
  stronger assumption than factoring alone. 3072 bits of n and 256 bits of v_p and v_q are the default.
- Two kinds of noise h^r. Who encrypts takes an exponent of 256 bits, half of the order of h: a device's ciphertext has
  to withstand shufflers, who cannot factor n. To them such a power of h is like any other unless they find short
  exponents (short-exponent indistinguishability, Koshiba and Kurosawa 2004): 2^128 steps of Pollard's kangaroos. Who
  hands ciphertexts on takes 128 bits more than the order of h has (`masks`): the noise is then uniform but for 2^-128,
  and not even the holder of the key, who knows p and q, can match ciphertexts. Short exponents would let it, at the
  price of discrete logarithms modulo p and q of 1536 bits, which are easier than those modulo n. That the server cannot
  match them is what a shuffle is for: there is no assumption in it.
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
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from hubbub.core.errors import DecodeError, InvalidValue, needs
from hubbub.core.reports import Words
from hubbub.shuffle.device_shares import PublicNumbers

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
_WIDE_WINDOW = 11  # tables of 60 MB for 3072 bits, made in a third of a second; 12 would save a fourteenth
SHORT_BITS = 256
"""The bits of the noise of a fresh encryption."""
_MARGIN = 128  # bits of an exponent beyond the order of h: what it selects is uniform but for 2^-128


@dataclass(frozen=True)
class DGKPublic:
    """What is needed to encrypt, to add, and to make ciphertexts unrecognisable.

    `modulus`, `g`, `h`: the modulus and the two generators. `subgroup_bits`: the size of v_p and of v_q.
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

    @property
    def mask_bits(self) -> int:
        """The bits of an exponent whose noise is uniform but for 2^-128."""
        return 2 * self.subgroup_bits + _MARGIN

    @staticmethod
    def of(numbers: PublicNumbers) -> DGKPublic:
        """The key of a signed collection. The same key is the same object, as its tables are large."""
        return _public(int(numbers.modulus, 16), int(numbers.g, 16), int(numbers.h, 16), numbers.subgroup_bits)

    @cached_property
    def _short(self) -> tuple[_Powers, _Powers]:
        return _Powers(self.g, self.modulus, BITS, _WINDOW), _Powers(self.h, self.modulus, SHORT_BITS, _WINDOW)

    @cached_property
    def _wide(self) -> tuple[_Powers, _Powers]:
        wide = _Powers(self.h, self.modulus, self.mask_bits, _WIDE_WINDOW)
        return _Powers(self.g, self.modulus, BITS, _WIDE_WINDOW), wide

    def encrypt(self, messages: Iterable[int] | Words) -> list[Any]:
        """Ciphertexts of messages, each with short noise of its own: what many devices send."""
        power_g, power_h = self._short
        return [power_g(message) * power_h(secrets.randbits(SHORT_BITS)) % self._n for message in _plain(messages)]

    def masks(self, messages: Words, noise: Sequence[int]) -> list[Any]:
        """Ciphertexts of messages with given noise of `mask_bits`: see `hubbub.shuffle.masks`."""
        power_g, power_h = self._wide
        return [
            power_g(message) * power_h(exponent) % self._n
            for message, exponent in zip(_plain(messages), noise, strict=True)
        ]

    def add(self, ciphertexts: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """Ciphertexts of the sums."""
        if len(ciphertexts) != len(others):
            raise InvalidValue("ciphertexts", f"{len(ciphertexts)} and {len(others)}", "as many of both")
        return [a * b % self._n for a, b in zip(ciphertexts, others, strict=True)]

    def to_bytes(self, ciphertexts: Sequence[Any]) -> bytes:
        """Ciphertexts as bytes, all of one size."""
        size = self.ciphertext_bytes
        return b"".join(int(a).to_bytes(size, "big") for a in ciphertexts)

    def from_bytes(self, data: bytes) -> list[Any]:
        """Read ciphertexts back; what is not in the group is refused."""
        read = self.numbers(data)
        if not all(self._in_group(read)):
            raise DecodeError("ciphertexts", "a number outside of the group", "elements of the group")
        return read

    def from_devices(self, shares: Sequence[bytes]) -> list[Any | None]:
        """Read the ciphertexts of many devices, of `ciphertext_bytes` each; None for what is not in the group.

        That a number of the group is a ciphertext cannot be seen without the private key: by the assumption above.
        """
        read = self.numbers(b"".join(shares))
        return [number if inside else None for number, inside in zip(read, self._in_group(read), strict=True)]

    def _in_group(self, numbers: list[Any]) -> list[bool]:
        """Whether each number is from 1 to the modulus and has no factor of it. One gcd is enough if none has."""
        inside, product = [0 < number < self._n for number in numbers], gmpy2.mpz(1)
        for number, small in zip(numbers, inside, strict=True):
            product = product * number % self._n if small else product
        if gmpy2.gcd(product, self._n) == 1:
            return inside
        return [small and gmpy2.gcd(number, self._n) == 1 for number, small in zip(numbers, inside, strict=True)]

    def numbers(self, data: bytes) -> list[Any]:
        """The numbers of bytes that need no check: those that were made here."""
        size = self.ciphertext_bytes
        if len(data) % size:
            raise DecodeError("ciphertexts", f"{len(data)} bytes", f"{size} bytes each")
        view = memoryview(data)
        return [gmpy2.mpz(int.from_bytes(view[at : at + size], "big")) for at in range(0, len(data), size)]

    @cached_property
    def _n(self) -> Any:
        return gmpy2.mpz(self.modulus)


@lru_cache(maxsize=4)
def _public(modulus: int, g: int, h: int, subgroup_bits: int) -> DGKPublic:
    return DGKPublic(modulus, g, h, subgroup_bits)


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

    def decrypt(self, ciphertexts: Sequence[Any]) -> Words:
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
        """The message of a ciphertext; None where it has none."""
        return self._logarithm(gmpy2.powmod_sec(cipher, self.v_p, self._p), BITS)

    def _logarithm(self, power: Any, bits: int) -> int | None:
        """The exponent of an element whose order divides 2^bits, the lower half of its bits first.

        Eight bits decide a root of one. None where it is no root of one: the ciphertext has no message.
        """
        places, away = self._roots
        if bits == _WINDOW:
            return places.get(power)
        half, lifted = bits // 2, power
        for _ in range(half):
            lifted = lifted * lifted % self._p
        low = self._logarithm(lifted, half)
        if low is None:
            return None
        first = (BITS - bits) // _WINDOW
        for number in range(half // _WINDOW):
            power = power * away[first + number][low >> number * _WINDOW & _DIGITS - 1] % self._p
        high = self._logarithm(power, half)
        return None if high is None else high << half | low


class _Powers:
    """Powers of one base, from tables of its powers: a multiplication for every window of bits of the exponent."""

    def __init__(self, base: int, modulus: int, bits: int, window: int) -> None:
        self._modulus, self._window, self._last = gmpy2.mpz(modulus), window, (1 << window) - 1
        self._rows = []
        step = gmpy2.mpz(base)
        for _ in range(-(-bits // window)):
            row = [gmpy2.mpz(1)]
            for _ in range(self._last):
                row.append(row[-1] * step % self._modulus)
            self._rows.append(row)
            step = row[-1] * step % self._modulus

    def __call__(self, exponent: int) -> Any:
        window, last, modulus = self._window, self._last, self._modulus
        power = self._rows[0][exponent & last]
        for row in self._rows[1:]:
            exponent >>= window
            digit = exponent & last
            if digit:
                power = power * row[digit] % modulus
        return power


def _plain(messages: Iterable[int] | Words) -> list[int]:
    numbers = [int(message) for message in messages]
    for number in numbers:
        if not 0 <= number < _SPACE:
            raise InvalidValue("messages", number, "integers from 0 to 2^64 - 1")
    return numbers


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
