"""A small public list of hash functions under which any two values collide exactly as often as under random ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def toeplitz_functions(size: int, buckets: int) -> int:
    """How many functions the list holds: with 2^m >= size values and 2^r buckets, 2^(m+r-1)."""
    return 1 << (size - 1).bit_length() + buckets.bit_length() - 2


def toeplitz(functions: NDArray[Any], values: NDArray[Any], buckets: int) -> NDArray[np.int64]:
    """The bucket of each value under each function; the two arrays broadcast, the buckets are a power of two.

    Bit j of the bucket is the parity of (function >> j) & value: a Toeplitz matrix times a vector of bits. Over the
    whole list, the matrix takes the difference of two values to each bucket equally often, so that they meet under
    exactly one function in `buckets`.
    """
    functions, values = np.asarray(functions, dtype=np.int64), np.asarray(values, dtype=np.int64)
    hashes = np.zeros(np.broadcast_shapes(functions.shape, values.shape), dtype=np.int64)
    for bit in range(buckets.bit_length() - 1):
        hashes |= (np.bitwise_count(functions >> bit & values).astype(np.int64) & 1) << bit
    return hashes


def supports(table: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """For every value, the total of a table (functions by buckets) over the cells that the value falls in.

    The indicator of a bucket is a sum of signs over its bits, and a sign of the bucket's bits is a sign of the
    function's: (-1)^parity(c & bucket) = (-1)^parity(function & mix), mix the sum (xor) of value << j over the bits j
    of c. So one Walsh-Hadamard transform a combination of bits gives the totals of all values.
    """
    functions, buckets = table.shape
    values = np.arange(size, dtype=np.int64)
    if size <= buckets:  # fewer cells to look up than transforms to make
        rows = np.arange(functions)[:, None]
        return np.asarray(table[rows, toeplitz(rows, values, buckets)].sum(axis=0))
    from hubbub.kernels.hadamard import walsh_hadamard

    total = np.full(size, table.sum(), dtype=np.int64)
    for combination in range(1, buckets):
        total += walsh_hadamard(table @ _signs(combination, buckets))[_mixed(values, combination)]
    return np.asarray(total // buckets)


def cell_weights(weights: NDArray[np.float64], functions: int, buckets: int) -> NDArray[np.float64]:
    """For every cell (functions by buckets), the weight of the values that fall in it: the transpose of `supports`."""
    from hubbub.kernels.hadamard import walsh_hadamard

    values = np.flatnonzero(weights)
    sums = np.full((functions, buckets), weights.sum())
    for combination in range(1, buckets):
        by_mix = np.bincount(_mixed(values, combination), weights=weights[values], minlength=functions)
        sums += walsh_hadamard(by_mix)[:, None] * _signs(combination, buckets)
    return np.asarray(sums / buckets)


def _signs(combination: int, buckets: int) -> NDArray[np.int64]:
    """The sign of every bucket under a combination of its bits."""
    return np.asarray(1 - 2 * (np.bitwise_count(np.arange(buckets) & combination).astype(np.int64) & 1))


def _mixed(values: NDArray[np.int64], combination: int) -> NDArray[np.int64]:
    """For each value, the bits of a function whose parity is that of the combination of its bucket's bits."""
    mix = np.zeros(values.size, dtype=np.int64)
    for bit in range(combination.bit_length()):
        if combination >> bit & 1:
            mix ^= values << bit
    return mix
