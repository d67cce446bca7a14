"""The keyed 32-bit hash that clients and servers share, and stable fingerprints of strings.

A spec names its function (`hash`). "product32" takes a 64-bit seed (two 32-bit words s1, s2) and a value of up to 64
bits. It is made of 32-bit operations that a browser computes alike (`Math.imul`): (s1 + w1) (s2 + w2), the low 32
bits, where the words w1 and w2 depend on the value alone and are all different for different values. Over random seeds,
two values fall together in one of g buckets with probability 1/g, as local hashing needs, and three as independent
ones would, as sums of estimates need, but for a few triples (`independent_pairs`; of values below 256, those of 0, 5
and 10 alone). Proof: for h and h', the hashes of two values whose words differ by d1 and d2,
the character exp(2 pi i (r h + r' h')/2^32) has a mean of at most gcd(r + r', 2^32)/2^32 where r + r' is not 0; and
where it is, 0, unless r d1 and r d2 are both divisible by 2^32. No two values below 2^32 agree in the last 16 bits of
both words, so that such r are multiples of 2^17, which no bucket feels: there are at most 2^16. The rest is measured.

Privacy never depends on it.
"""

import hashlib
import unicodedata

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Array, Ints, Words

HASH = "product32"
"""The name of the function that `hash32` computes."""

GOLDEN = 0x9E3779B9
MIX_1 = 0x21F0AAAD
MIX_2 = 0xD35A2D97
_LOW = np.uint64(0xFFFFFFFF)
_WORD = np.uint64(32)
_HALF = np.uint32(16)
_SPREAD = (0x68756262, 0x75620000)


def hash32(seeds: Words | np.uint64, values: Array | np.uint64) -> NDArray[np.uint32]:
    """Hash each value under each seed; the two arrays broadcast."""
    low_seed, high_seed = _halves(np.asarray(seeds, dtype=np.uint64))
    first, second = value_words(np.asarray(values, dtype=np.uint64))
    with np.errstate(over="ignore"):  # numpy warns where a scalar wraps round, and only there
        return np.asarray((low_seed + first) * (high_seed + second), dtype=np.uint32)


def mix32(seeds: Words | np.uint64, values: Array | np.uint64) -> NDArray[np.uint32]:
    """32 bits that look random for each seed and each value, and are uniform over random seeds; the arrays broadcast.

    It is no hash for reports: pairs of values that differ in one high bit meet too often or too rarely.
    """
    low_seed, high_seed = _halves(np.asarray(seeds, dtype=np.uint64))
    low, high = _halves(np.asarray(values, dtype=np.uint64))
    with np.errstate(over="ignore"):
        if high.any():
            low_seed = np.where(high != 0, _mix(low_seed, high_seed, high), low_seed)
        return _mix(low_seed, high_seed, low)


def value_words(values: Words) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The two words of each value that the hash adds to those of the seed.

    The upper half goes through a fixed permutation and into the lower one, which goes through it too: w1. Its halves
    swapped, with the permuted upper half added, are w2. Both steps can be undone: no two values have the same words.
    """
    low, high = _halves(np.asarray(values, dtype=np.uint64))
    with np.errstate(over="ignore"):
        upper = _permuted(high)
        first = _permuted(low ^ upper)
        return first, np.asarray((first << _HALF | first >> _HALF) + upper, dtype=np.uint32)


def spread_seeds(numbers: Words) -> Words:
    """Seeds for the functions of a public list, from their numbers: 64 bits that look random."""
    low, high = (mix32(np.array(word, dtype=np.uint64), numbers).astype(np.uint64) for word in _SPREAD)
    return np.asarray(low | high << _WORD)


def bucket(hashes: NDArray[np.uint32], buckets: int) -> Ints:
    """Map 32-bit hashes to 0..buckets-1 by multiply and shift."""
    return ((hashes.astype(np.uint64) * np.uint64(buckets)) >> _WORD).astype(np.int64)


def fingerprint(text: str) -> int:
    """A stable 64-bit code for a string: SHA-256 of its NFC form, never 0..2^32-1."""
    digest = hashlib.sha256(unicodedata.normalize("NFC", text).encode()).digest()
    return int.from_bytes(digest[:8], "little") | 1 << 32  # a wide value, apart from every plain code


def _mix(low_seed: NDArray[np.uint32], high_seed: NDArray[np.uint32], word: NDArray[np.uint32]) -> NDArray[np.uint32]:
    x = low_seed ^ (word * np.uint32(GOLDEN))
    x = (x ^ (x >> np.uint32(16))) * np.uint32(MIX_1) + high_seed
    x = (x ^ (x >> np.uint32(15))) * np.uint32(MIX_2)
    return np.asarray(x ^ (x >> np.uint32(15)), dtype=np.uint32)


def _permuted(word: NDArray[np.uint32]) -> NDArray[np.uint32]:
    zero = np.zeros((), dtype=np.uint32)
    return _mix(zero, zero, word)


def _halves(words: Words) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    return (words & _LOW).astype(np.uint32), (words >> _WORD).astype(np.uint32)
