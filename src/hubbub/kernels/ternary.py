"""The hot loops of ternary mechanisms: CoCo's supports of +1 and -1, and sequential selection.

CoCo's hot loop: how many reports support +1, and how many -1, at each position.

One hash of the position says which of t buckets +1 falls in; -1 falls in its neighbour, the bucket whose number
differs in the last bit. Both are intervals of hashes, as in `support.py`, so that one hash answers for both signs.

Sequential selection of many devices at once: the loop of `mechanisms/ternary/selection.py`, compiled.

A row is a device, with its own five counters; a column an entry, with its own 32 random bits. Nearly every entry takes
one multiplication and one comparison.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Array, Ints, Words
from hubbub.kernels.compile import in_threads, inline, kernel, readonly
from hubbub.kernels.support import BLOCK, SLICE, _multiplied, bucket_intervals, candidate_words

_ONE, _WORD_BITS = np.uint32(1), np.uint64(32)
_HALF = np.int64(1 << 31)  # widths are less by this much, so that signed comparisons serve


def pair_support(seeds: Words, buckets: Array, t: int, dimension: int) -> Ints:
    """For each position, the number of reports whose bucket its hash falls in, and in whose neighbour it falls."""
    seeds, buckets = readonly(seeds, np.uint64), readonly(buckets, np.uint16)
    words, seconds = candidate_words(np.arange(dimension, dtype=np.uint64))
    lows, widths = bucket_intervals(t)

    def count(start: int, stop: int) -> Ints:
        counts = np.zeros((2, dimension), dtype=np.int64)
        _pairs(seeds[start:stop], buckets[start:stop], lows, widths, words, seconds, counts)
        return counts

    return in_threads(count, len(seeds), max(BLOCK, SLICE // max(1, dimension)))


@inline
def _both(low_seed, high_seed, low, width, pair_width, words, seconds, own, other):
    """Count the hashes in the first bucket of their report's pair, and in the second, of two positions at a time.

    What is loaded of a report serves both.
    """
    for v in range(0, words.size, 2):
        u = min(v + 1, words.size - 1)
        word_v, second_v, word_u, second_u = words[v], seconds[v], words[u], seconds[u]
        own_v, either_v, own_u, either_u = np.uint32(0), np.uint32(0), np.uint32(0), np.uint32(0)
        for j in range(low_seed.size):
            offset_v = np.int32(_multiplied(low_seed[j], high_seed[j], word_v, second_v) - low[j])
            offset_u = np.int32(_multiplied(low_seed[j], high_seed[j], word_u, second_u) - low[j])
            if offset_v < width[j]:
                own_v = np.uint32(own_v + _ONE)
            if offset_v < pair_width[j]:
                either_v = np.uint32(either_v + _ONE)
            if offset_u < width[j]:
                own_u = np.uint32(own_u + _ONE)
            if offset_u < pair_width[j]:
                either_u = np.uint32(either_u + _ONE)
        own[v] += np.int64(own_v)
        other[v] += np.int64(either_v) - np.int64(own_v)
        if u > v:
            own[u] += np.int64(own_u)
            other[u] += np.int64(either_u) - np.int64(own_u)


@kernel
def _pairs(seeds, buckets, lows, widths, words, seconds, counts):
    low_seed, high_seed = np.empty(BLOCK, dtype=np.uint32), np.empty(BLOCK, dtype=np.uint32)
    low = np.empty(BLOCK, dtype=np.uint32)
    width, pair_width = np.empty(BLOCK, dtype=np.int32), np.empty(BLOCK, dtype=np.int32)
    for start in range(0, seeds.size, BLOCK):
        size = min(BLOCK, seeds.size - start)
        # Reports of a first bucket go to the front, those of a second to the back: they count the other way round.
        front, back = 0, size
        for j in range(size):
            seed, y = seeds[start + j], buckets[start + j]
            if y & 1:
                back -= 1
                place = back
            else:
                place = front
                front += 1
            low_seed[place], high_seed[place] = np.uint32(seed), np.uint32(seed >> _WORD_BITS)
            pair = y >> 1
            low[place], width[place] = lows[2 * pair], widths[2 * pair]
            pair_width[place] = widths[2 * pair] + widths[2 * pair + 1] + _HALF
        for part in range(2):
            rows = slice(0, front) if part == 0 else slice(front, size)
            a, b, c, w, pw = low_seed[rows], high_seed[rows], low[rows], width[rows], pair_width[rows]
            _both(a, b, c, w, pw, words, seconds, counts[part], counts[1 - part])


_WORD = np.uint64(32)


def select(
    values: NDArray[np.int8], words: NDArray[np.uint32], counters: NDArray[np.int32], settle: Callable[[int, int], int]
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
