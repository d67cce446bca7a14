"""Local hashing's hot loop: how many reports support each candidate.

A report (seed, y) supports v when `(hash(seed, v) * g) >> 32 == y`, which is `hash - low_y < width_y` in 32-bit
arithmetic: bucket y is an interval of hashes. Blocks of reports stay in the L1 cache while every candidate
passes over them; the inner loop vectorises.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.hashing import GOLDEN, MIX_1, MIX_2
from hubbub.kernels.compile import inline, parallel_kernel, prange, tasks_for

__all__ = ["hash_support"]

BLOCK = 2048
_MIX_1, _MIX_2 = np.uint32(MIX_1), np.uint32(MIX_2)
_ONE, _S15, _S16 = np.uint32(1), np.uint32(15), np.uint32(16)


def hash_support(
    seeds: NDArray[np.uint64],
    buckets: NDArray[Any],
    g: int,
    candidates: NDArray[np.uint64],
    weights: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """For each candidate, the number of reports, or their total weight, whose bucket holds it.

    Example:
        >>> import numpy as np
        >>> hash_support(np.uint64([1, 2]), np.uint8([0, 1]), 2, np.arange(4, dtype=np.uint64)).tolist()
        [1, 1, 0, 0]
    """
    seeds = np.ascontiguousarray(seeds, dtype=np.uint64)
    words = candidates.astype(np.uint32) * np.uint32(GOLDEN)
    wides = (candidates >> np.uint64(32)).astype(np.uint32) * np.uint32(GOLDEN)
    # Bucket y holds the hashes h with y <= h g / 2^32 < y + 1.
    edges = np.array([-(-(y << 32) // g) for y in range(g + 1)], dtype=np.uint64)
    index = buckets.astype(np.int64)
    low = edges[index].astype(np.uint32)
    width = (edges[index + 1] - edges[index]).astype(np.uint32)
    halves = seeds.astype(np.uint32), (seeds >> np.uint64(32)).astype(np.uint32)
    weighing = np.zeros(0, dtype=np.int64) if weights is None else np.ascontiguousarray(weights, dtype=np.int64)
    counts = np.zeros(len(words), dtype=np.int64)
    _support(*halves, low, width, words, wides, weighing, tasks_for(len(seeds), BLOCK), counts)
    return counts


@inline
def _mix(low_seed, high_seed, word):
    x = np.uint32(low_seed ^ word)
    x = np.uint32(np.uint32(x ^ (x >> _S16)) * _MIX_1 + high_seed)
    x = np.uint32(np.uint32(x ^ (x >> _S15)) * _MIX_2)
    return np.uint32(x ^ (x >> _S15))


@inline
def _hits(low_seed, high_seed, low, width, word):
    hits = np.uint32(0)
    for j in range(low_seed.size):
        h = _mix(low_seed[j], high_seed[j], word)
        if np.uint32(h - low[j]) < width[j]:
            hits = np.uint32(hits + _ONE)  # numba would widen `hits += 1` to 64 bits, and lose half the lanes
    return np.int64(hits)


@inline
def _weight(low_seed, high_seed, low, width, word, weights):
    total = np.int64(0)
    for j in range(low_seed.size):
        h = _mix(low_seed[j], high_seed[j], word)
        total += weights[j] * np.int64(np.uint32(h - low[j]) < width[j])
    return total


@inline
def _rekeyed(low_seed, high_seed, wide, out):
    """The seeds that the upper word of a wide value leads to: the first of its two passes."""
    for j in range(low_seed.size):
        out[j] = _mix(low_seed[j], high_seed[j], wide)
    return out[: low_seed.size]


@parallel_kernel
def _support(low_seed, high_seed, low, width, words, wides, weights, tasks, counts):
    n, d = low_seed.size, words.size
    partial = np.zeros((tasks, d), dtype=np.int64)
    for task in prange(tasks):
        rekeyed = np.empty(BLOCK, dtype=np.uint32)
        end = (task + 1) * n // tasks
        for start in range(task * n // tasks, end, BLOCK):
            stop = min(start + BLOCK, end)
            a, b, c, w = low_seed[start:stop], high_seed[start:stop], low[start:stop], width[start:stop]
            for v in range(d):
                seed = a if wides[v] == 0 else _rekeyed(a, b, wides[v], rekeyed)
                if weights.size == 0:
                    partial[task, v] += _hits(seed, b, c, w, words[v])
                else:
                    partial[task, v] += _weight(seed, b, c, w, words[v], weights[start:stop])
    for task in range(tasks):
        counts += partial[task]
