"""The keyed 32-bit hash that clients and servers share, and stable fingerprints of strings.

The hash is a mixing function with a 64-bit seed (two 32-bit words), made of xor, shift, add and 32-bit multiply:
`Math.imul` computes the same in a browser. Values of up to 32 bits take one pass; wider ones (string
fingerprints) take two, the upper word first. Over random seeds, two values fall together in one of g
buckets with probability 1/g, as local hashing needs; privacy never depends on it.
"""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["GOLDEN", "MIX_1", "MIX_2", "bucket", "fingerprint", "hash32"]

GOLDEN = 0x9E3779B9
MIX_1 = 0x21F0AAAD
MIX_2 = 0xD35A2D97
_LOW = np.uint64(0xFFFFFFFF)
_WORD = np.uint64(32)


def hash32(seeds: NDArray[np.uint64], values: NDArray[Any]) -> NDArray[np.uint32]:
    """Hash each value under each seed; the two arrays broadcast.

    Example:
        >>> import numpy as np
        >>> hash32(np.uint64([1, 2]), np.uint64([3, 3])).tolist()
        [2376280270, 218460561]
    """
    seeds = np.asarray(seeds, dtype=np.uint64)
    values = np.asarray(values, dtype=np.uint64)
    low_seed, high_seed = (seeds & _LOW).astype(np.uint32), (seeds >> _WORD).astype(np.uint32)
    low, high = (values & _LOW).astype(np.uint32), (values >> _WORD).astype(np.uint32)
    with np.errstate(over="ignore"):  # numpy warns where a scalar wraps round, and only there
        if high.any():
            low_seed = np.where(high != 0, _mix(low_seed, high_seed, high), low_seed)
        return _mix(low_seed, high_seed, low)


def bucket(hashes: NDArray[np.uint32], buckets: int) -> NDArray[np.int64]:
    """Map 32-bit hashes to 0..buckets-1 by multiply and shift.

    Example:
        >>> import numpy as np
        >>> bucket(np.uint32([0, 2**31, 2**32 - 1]), 4).tolist()
        [0, 2, 3]
    """
    return ((hashes.astype(np.uint64) * np.uint64(buckets)) >> _WORD).astype(np.int64)


def fingerprint(text: str) -> int:
    """A stable 64-bit code for a string: SHA-256 of its NFC form, never 0..2^32-1.

    Example:
        >>> fingerprint("caf\u00e9") == fingerprint("cafe\u0301")
        True
    """
    digest = hashlib.sha256(unicodedata.normalize("NFC", text).encode()).digest()
    return int.from_bytes(digest[:8], "little") | 1 << 32  # a wide value, apart from every plain code


def _mix(low_seed: NDArray[np.uint32], high_seed: NDArray[np.uint32], word: NDArray[np.uint32]) -> NDArray[np.uint32]:
    x = low_seed ^ (word * np.uint32(GOLDEN))
    x = (x ^ (x >> np.uint32(16))) * np.uint32(MIX_1) + high_seed
    x = (x ^ (x >> np.uint32(15))) * np.uint32(MIX_2)
    return np.asarray(x ^ (x >> np.uint32(15)), dtype=np.uint32)
