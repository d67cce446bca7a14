"""Local hashing's hot loop: how many reports support each candidate.

A report (seed, y) supports v when `(hash(seed, v) * g) >> 32 == y`, which is `hash - low_y < width_y` in 32-bit
arithmetic: bucket y is an interval of hashes. Blocks of reports stay in the L1 cache while every candidate
passes over them; the inner loop vectorises. What depends on the candidate alone is computed once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.hashing import BEST_HASH, FIRST_HASH, GOLDEN, MIX_1, MIX_2, value_words
from hubbub.kernels.compile import inline, kernel
from hubbub.kernels.threads import in_threads, readonly

BLOCK = 2048
SLICE = 1 << 25  # hashes, some 5 ms: less is not worth a thread
_MIX_1, _MIX_2 = np.uint32(MIX_1), np.uint32(MIX_2)
_ONE, _S15, _S16, _WORD = np.uint32(1), np.uint32(15), np.uint32(16), np.uint64(32)
_SIGN = np.uint32(1 << 31)


def hash_support(
    seeds: NDArray[np.uint64],
    buckets: NDArray[Any],
    g: int,
    candidates: NDArray[np.uint64],
    *,
    name: str = FIRST_HASH,
) -> NDArray[np.int64]:
    """For each candidate, the number of reports whose bucket it falls in, under the hash function `name`."""
    seeds, buckets = readonly(seeds, np.uint64), readonly(buckets, np.uint16)
    words, wides = candidate_words(candidates, name)
    lows, widths = bucket_intervals(g)
    product = name == BEST_HASH

    def count(start: int, stop: int) -> NDArray[np.int64]:
        counts = np.zeros(len(words), dtype=np.int64)
        rows = slice(start, stop)
        _support(seeds[rows], buckets[rows], lows, widths, words, wides, product, counts)
        return counts

    return in_threads(count, len(seeds), max(BLOCK, SLICE // max(1, len(words))))


def candidate_words(candidates: NDArray[np.uint64], name: str) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The two words of a hash that depend on the candidate alone, in the form that the kernels read."""
    if name == BEST_HASH:
        first, second = value_words(candidates)
        return readonly(first, np.uint32), readonly(second, np.uint32)
    words = readonly(candidates.astype(np.uint32) * np.uint32(GOLDEN), np.uint32)
    return words, readonly((candidates >> _WORD).astype(np.uint32) * np.uint32(GOLDEN), np.uint32)


@lru_cache(maxsize=64)
def bucket_intervals(g: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Where the hashes of each of g buckets start, and how many there are: `int32(hash - low) < width`."""
    # Bucket y holds the hashes h with y <= h g / 2^32 < y + 1. Both ends of the comparison are moved by 2^31, because
    # vector units compare signed integers only.
    edges = ((np.arange(g + 1, dtype=np.uint64) << _WORD) + np.uint64(g - 1)) // np.uint64(g)
    lows = readonly(edges[:-1].astype(np.uint32) + _SIGN, np.uint32)
    widths = readonly((np.diff(edges).astype(np.uint32) - _SIGN).view(np.int32), np.int32)
    return lows, widths


@inline
def _mix(low_seed, high_seed, word):
    x = np.uint32(low_seed ^ word)
    x = np.uint32(np.uint32(x ^ (x >> _S16)) * _MIX_1 + high_seed)
    x = np.uint32(np.uint32(x ^ (x >> _S15)) * _MIX_2)
    return np.uint32(x ^ (x >> _S15))


@inline
def _multiplied(low_seed, high_seed, first, second):
    return np.uint32(np.uint32(low_seed + first) * np.uint32(high_seed + second))


@inline
def _hits_product(low_seed, high_seed, low, width, first, second):
    hits = np.uint32(0)
    for j in range(low_seed.size):
        if np.int32(_multiplied(low_seed[j], high_seed[j], first, second) - low[j]) < width[j]:
            hits = np.uint32(hits + _ONE)
    return np.int64(hits)


@inline
def _hits(low_seed, high_seed, low, width, word):
    hits = np.uint32(0)
    for j in range(low_seed.size):
        h = _mix(low_seed[j], high_seed[j], word)
        if np.int32(h - low[j]) < width[j]:
            hits = np.uint32(hits + _ONE)  # numba would widen `hits += 1` to 64 bits, and lose half the lanes
    return np.int64(hits)


@inline
def _rekeyed(low_seed, high_seed, wide, out):
    """The seeds that the upper word of a wide value leads to: the first of its two passes."""
    for j in range(low_seed.size):
        out[j] = _mix(low_seed[j], high_seed[j], wide)
    return out[: low_seed.size]


@inline
def _loaded(seeds, buckets, lows, widths, low_seed, high_seed, low, width):
    """Put a block of reports into the buffers, each with the interval of its bucket."""
    for j in range(seeds.size):
        seed, y = seeds[j], buckets[j]
        low_seed[j], high_seed[j] = np.uint32(seed), np.uint32(seed >> _WORD)
        low[j], width[j] = lows[y], widths[y]
    size = seeds.size
    return low_seed[:size], high_seed[:size], low[:size], width[:size]


@kernel
def _support(seeds, buckets, lows, widths, words, wides, product, counts):
    low_seed, high_seed = np.empty(BLOCK, dtype=np.uint32), np.empty(BLOCK, dtype=np.uint32)
    low, width = np.empty(BLOCK, dtype=np.uint32), np.empty(BLOCK, dtype=np.int32)
    rekeyed = np.empty(BLOCK, dtype=np.uint32)
    for start in range(0, seeds.size, BLOCK):
        stop = min(start + BLOCK, seeds.size)
        a, b, c, w = _loaded(seeds[start:stop], buckets[start:stop], lows, widths, low_seed, high_seed, low, width)
        for v in range(words.size):
            if product:
                counts[v] += _hits_product(a, b, c, w, words[v], wides[v])
            else:
                first = a if wides[v] == 0 else _rekeyed(a, b, wides[v], rekeyed)
                counts[v] += _hits(first, b, c, w, words[v])
