"""Sequential selection of many devices at once: the loop of `mechanisms/ternary/selection.py`, compiled.

A row is a device, with its own five counters; a column an entry, with its own 32 random bits. Nearly every entry takes
one multiplication and one comparison.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hubbub.kernels.compile import kernel
from hubbub.kernels.threads import readonly

_WORD = np.uint64(32)


def select(
    values: NDArray[np.int8],
    words: NDArray[np.uint32],
    counters: NDArray[np.int32],
    settle: Callable[[int, int], int],
) -> NDArray[np.int8]:
    """Report a sign, or nothing, for every value; `settle(row, column)` decides where 32 bits cannot."""
    signs = np.zeros(values.shape, dtype=np.int8)
    values, words = readonly(values, np.int8), readonly(words, np.uint32)
    row, column = 0, 0
    while True:
        row, column = _select(values, words, counters, signs, row, column)
        if row == len(values):
            return signs
        signs[row, column] = settle(row, column)
        row, column = (row, column + 1) if column + 1 < values.shape[1] else (row + 1, 0)


@kernel
def _select(values, words, counters, signs, row, column):
    """Continue from a row and column, to the end or to the next place where the bits cannot decide."""
    n, width = values.shape
    for i in range(row, n):
        trues, reverses, falses = np.uint64(counters[i, 0]), np.uint64(counters[i, 1]), np.uint64(counters[i, 2])
        entries, zeros = np.uint64(counters[i, 3]), np.uint64(counters[i, 4])
        for j in range(column, width):
            value = values[i, j]
            if value == 0 or entries == 0:
                plus, minus, total = falses, falses, zeros + zeros
            elif value > 0:
                plus, minus, total = trues, reverses, entries
            else:
                plus, minus, total = reverses, trues, entries
            low = np.uint64(words[i, j]) * total
            first, second = plus << _WORD, (plus + minus) << _WORD
            sign = 0
            if low < second:
                if low + total <= first:
                    sign = 1
                elif low >= first and low + total <= second:
                    sign = -1
                else:
                    counters[i, 0], counters[i, 1], counters[i, 2] = trues, reverses, falses
                    counters[i, 3], counters[i, 4] = entries, zeros
                    return i, j
                signs[i, j] = sign
            if value == 0 or entries == 0:
                zeros -= np.uint64(1)
                if sign != 0:
                    falses -= np.uint64(1)
            else:
                entries -= np.uint64(1)
                if sign == value:
                    trues -= np.uint64(1)
                elif sign != 0:
                    reverses -= np.uint64(1)
        counters[i, 0], counters[i, 1], counters[i, 2] = trues, reverses, falses
        counters[i, 3], counters[i, 4] = entries, zeros
        column = 0
    return n, 0
