"""Local hashing's hot loop: how many reports support each candidate.

A report (seed, y) supports v when `(hash(seed, v) * g) >> 32 == y`, which is `hash - low_y < width_y` in 32-bit
arithmetic: bucket y is an interval of hashes. Blocks of reports stay in the L1 cache while every candidate
passes over them; the inner loop vectorises. What depends on the candidate alone is computed once.

Local hashing's hot loop with weights: the sum of the weights, or also of their squares, of supporting reports.

Vector units add 32-bit integers fastest. So a weight is cut into digits of 22 bits, of which a block of 1024 sums to
less than 2^32, and three digits are added up in one pass: a weight of up to 22 bits and its square take one.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.core.hashing import value_words
from hubbub.core.reports import Array, Ints, Words
from hubbub.kernels.compile import in_threads, inline, kernel, readonly

BLOCK = 2048
SLICE = 1 << 25  # hashes, some 5 ms: less is not worth a thread
TABLE_SLICE = 1 << 22  # numbers of a table, some 5 ms
_ONE, _WORD = np.uint32(1), np.uint64(32)
_SIGN = np.uint32(1 << 31)


Intervals = tuple[NDArray[np.uint32], NDArray[np.int32]]
"""For each bucket, where the hashes that it supports start, and how many there are: `int32(hash - low) < width`."""


def hash_support(seeds: Words, buckets: Array, g: int | Intervals, candidates: Words) -> Ints:
    """For each candidate, the number of reports whose bucket, of g or of these intervals, it falls in."""
    seeds, buckets = readonly(seeds, np.uint64), readonly(buckets, np.uint16)
    words, seconds = candidate_words(candidates)
    lows, widths = bucket_intervals(g) if isinstance(g, int) else g

    def count(start: int, stop: int) -> Ints:
        counts = np.zeros(len(words), dtype=np.int64)
        rows = slice(start, stop)
        _support(seeds[rows], buckets[rows], lows, widths, words, seconds, counts)
        return counts

    return in_threads(count, len(seeds), max(BLOCK, SLICE // max(1, len(words))))


def candidate_words(candidates: Words) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The two words of a hash that depend on the candidate alone, in the form that the kernels read."""
    first, second = value_words(candidates)
    return readonly(first, np.uint32), readonly(second, np.uint32)


@lru_cache(maxsize=64)
def bucket_intervals(g: int) -> Intervals:
    """The intervals of g buckets, which divide all hashes evenly."""
    # Bucket y holds the hashes h with y <= h g / 2^32 < y + 1. Both ends of the comparison are moved by 2^31, because
    # vector units compare signed integers only.
    edges = ((np.arange(g + 1, dtype=np.uint64) << _WORD) + np.uint64(g - 1)) // np.uint64(g)
    lows = readonly(edges[:-1].astype(np.uint32) + _SIGN, np.uint32)
    widths = readonly((np.diff(edges).astype(np.uint32) - _SIGN).view(np.int32), np.int32)
    return lows, widths


@lru_cache(maxsize=64)
def arc_intervals(cells: int, arc: int) -> Intervals:
    """The intervals of each of 2^k cells of a circle: the hashes whose cell is it, or fewer than `arc` before it."""
    size = (1 << 32) // cells
    lows = (np.arange(cells, dtype=np.uint64) - np.uint64(arc - 1)) * np.uint64(size)
    width = (np.full(cells, arc * size, dtype=np.uint32) - _SIGN).view(np.int32)
    return readonly(lows.astype(np.uint32) + _SIGN, np.uint32), readonly(width, np.int32)


@inline
def _multiplied(low_seed, high_seed, first, second):
    return np.uint32(np.uint32(low_seed + first) * np.uint32(high_seed + second))


@inline
def _hits(low_seed, high_seed, low, width, first, second):
    hits = np.uint32(0)
    for j in range(low_seed.size):
        if np.int32(_multiplied(low_seed[j], high_seed[j], first, second) - low[j]) < width[j]:
            hits = np.uint32(hits + _ONE)  # numba would widen `hits += 1` to 64 bits, and lose half the lanes
    return np.int64(hits)


@inline
def _hits_of_four(low_seed, high_seed, low, width, words, seconds, v, counts):
    """Of four candidates at once, from v on: what is loaded of a report serves them all."""
    word_a, word_b, word_c, word_d = words[v], words[v + 1], words[v + 2], words[v + 3]
    second_a, second_b, second_c, second_d = seconds[v], seconds[v + 1], seconds[v + 2], seconds[v + 3]
    a, b, c, d = np.uint32(0), np.uint32(0), np.uint32(0), np.uint32(0)
    for j in range(low_seed.size):
        if np.int32(_multiplied(low_seed[j], high_seed[j], word_a, second_a) - low[j]) < width[j]:
            a = np.uint32(a + _ONE)
        if np.int32(_multiplied(low_seed[j], high_seed[j], word_b, second_b) - low[j]) < width[j]:
            b = np.uint32(b + _ONE)
        if np.int32(_multiplied(low_seed[j], high_seed[j], word_c, second_c) - low[j]) < width[j]:
            c = np.uint32(c + _ONE)
        if np.int32(_multiplied(low_seed[j], high_seed[j], word_d, second_d) - low[j]) < width[j]:
            d = np.uint32(d + _ONE)
    counts[v] += np.int64(a)
    counts[v + 1] += np.int64(b)
    counts[v + 2] += np.int64(c)
    counts[v + 3] += np.int64(d)


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
def _support(seeds, buckets, lows, widths, words, seconds, counts):
    low_seed, high_seed = np.empty(BLOCK, dtype=np.uint32), np.empty(BLOCK, dtype=np.uint32)
    low, width = np.empty(BLOCK, dtype=np.uint32), np.empty(BLOCK, dtype=np.int32)
    for start in range(0, seeds.size, BLOCK):
        stop = min(start + BLOCK, seeds.size)
        a, b, c, w = _loaded(seeds[start:stop], buckets[start:stop], lows, widths, low_seed, high_seed, low, width)
        fours = words.size - words.size % 4
        for v in range(0, fours, 4):
            _hits_of_four(a, b, c, w, words, seconds, v, counts)
        for v in range(fours, words.size):
            counts[v] += _hits(a, b, c, w, words[v], seconds[v])


def table_sums(table: Ints, seeds: Words, candidates: Words) -> Ints:
    """For each candidate, the sum over hash functions (rows of the table, by seed) of the number in its bucket."""
    table, seeds = readonly(table, np.int64), readonly(seeds, np.uint64)
    words, seconds = candidate_words(candidates)

    def count(start: int, stop: int) -> Ints:
        sums = np.zeros(len(words), dtype=np.int64)
        _looked_up(table[start:stop], seeds[start:stop], words, seconds, sums)
        return sums

    return in_threads(count, len(seeds), max(1, TABLE_SLICE // max(1, len(words))))


@kernel
def _looked_up(table, seeds, words, seconds, sums):
    buckets = np.uint64(table.shape[1])
    for j in range(seeds.size):
        low_seed, high_seed = np.uint32(seeds[j]), np.uint32(seeds[j] >> _WORD)
        for v in range(words.size):
            hashed = np.uint64(_multiplied(low_seed, high_seed, words[v], seconds[v]))
            sums[v] += table[j, (hashed * buckets) >> _WORD]


WEIGHTED_BLOCK = 1024
DIGIT = 22  # bits: a block's digits sum to less than 2^32
WEIGHTED_SLICE = 1 << 24  # hashes, some 5 ms: less is not worth a thread
TOGETHER = 3
_MASK = np.uint64((1 << DIGIT) - 1)


def hash_sums(
    seeds: Words, buckets: Array, g: int | Intervals, candidates: Words, weights: Ints, *, powers: int = 1
) -> Ints:
    """The sum of the weights of the reports that support each candidate, then of all reports; row 2: of squares.

    `seeds`, `buckets`, `g`, `candidates`: as of `hash_support`. `weights`: one per report. `powers`: 1, or 2 for a row
    of squares too; these must sum to less than 2^63.
    """
    seeds, buckets, weights = readonly(seeds, np.uint64), readonly(buckets, np.uint16), readonly(weights, np.int64)
    words, seconds = candidate_words(candidates)
    lows, widths = bucket_intervals(g) if isinstance(g, int) else g
    least, most, total, squares = _totals(weights)
    digits, factors = _digits(least, most, powers)

    def count(start: int, stop: int) -> Ints:
        sums = np.zeros((len(digits), len(words)), dtype=np.int64)
        rows = slice(start, stop)
        for first in range(0, len(digits), TOGETHER):
            part, own = readonly(digits[first : first + TOGETHER], np.int64), sums[first : first + TOGETHER]
            _sums(seeds[rows], buckets[rows], weights[rows], least, part, lows, widths, words, seconds, own)
        return sums

    sums = in_threads(count, len(seeds), max(WEIGHTED_BLOCK, WEIGHTED_SLICE // max(1, len(words))))
    result = np.empty((powers, len(words) + 1), dtype=np.int64)
    result[:, :-1] = factors @ sums  # may wrap around 2^64 on the way, and comes back
    result[:, -1] = (total, squares)[:powers]
    return result


def _digits(least: int, most: int, powers: int) -> tuple[Ints, Ints]:
    """The digits to add up, three by three, and the factor of each digit in the sums of weights and of squares.

    A digit is the power of the weight that it is cut from (0 for 1 itself), and the place of its lowest bit. The least
    weight is first subtracted from all; if it is below 0, reports are counted too, as power 0. The list is filled up
    with digits that are always 0: power 0 at a bit that 1 does not have.
    """
    digits = [(1, shift) for shift in range(0, (most - least).bit_length(), DIGIT)]
    if powers == 2:
        digits += [(2, shift) for shift in range(0, (max(most, -least) ** 2).bit_length(), DIGIT)]
    if least:
        digits.append((0, 0))
    factors = [[1 << shift if power == row else least * (row == 1 and power == 0) for power, shift in digits]
               for row in range(1, powers + 1)]  # fmt: skip
    spare = -len(digits) % TOGETHER
    padded = np.array([row + [0] * spare for row in factors], dtype=np.int64)
    return np.array(digits + [(0, 1)] * spare, dtype=np.int64).reshape(-1, 2), padded


@kernel
def _totals(weights):
    """The least and the greatest weight, 0 among them, their sum and that of their squares."""
    least, most, total, squares = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for j in range(weights.size):
        weight = weights[j]
        least, most = min(least, weight), max(most, weight)
        total += weight
        squares += weight * weight
    return least, most, total, squares


@inline
def _cut(weights, least, digit, out):
    """Put a digit of a block of weights into a buffer."""
    power, shift = digit[0], np.uint64(digit[1])
    if power == 0:
        out[:] = np.uint32(shift == 0)
    elif power == 1:
        for j in range(out.size):
            out[j] = np.uint32((np.uint64(weights[j] - least) >> shift) & _MASK)
    else:
        for j in range(out.size):
            out[j] = np.uint32((np.uint64(weights[j] * weights[j]) >> shift) & _MASK)
    return out


@inline
def _add(sums, v, a, b, c):
    sums[0, v] += np.int64(a)
    sums[1, v] += np.int64(b)
    sums[2, v] += np.int64(c)


@inline
def _added(low_seed, high_seed, low, width, words, seconds, v, x, y, z, sums):
    """Of two candidates at once, v and the next: what was loaded for one serves the other."""
    u = min(v + 1, words.size - 1)
    first, second, third, fourth = words[v], seconds[v], words[u], seconds[u]
    a, b, c = np.uint32(0), np.uint32(0), np.uint32(0)
    d, e, f = np.uint32(0), np.uint32(0), np.uint32(0)
    for j in range(low_seed.size):
        if np.int32(_multiplied(low_seed[j], high_seed[j], first, second) - low[j]) < width[j]:
            a, b, c = np.uint32(a + x[j]), np.uint32(b + y[j]), np.uint32(c + z[j])
        if np.int32(_multiplied(low_seed[j], high_seed[j], third, fourth) - low[j]) < width[j]:
            d, e, f = np.uint32(d + x[j]), np.uint32(e + y[j]), np.uint32(f + z[j])
    _add(sums, v, a, b, c)
    if u > v:
        _add(sums, u, d, e, f)


@kernel
def _sums(seeds, buckets, weights, least, digits, lows, widths, words, seconds, sums):
    low_seed, high_seed = np.empty(WEIGHTED_BLOCK, dtype=np.uint32), np.empty(WEIGHTED_BLOCK, dtype=np.uint32)
    low, width = np.empty(WEIGHTED_BLOCK, dtype=np.uint32), np.empty(WEIGHTED_BLOCK, dtype=np.int32)
    cut = np.empty((TOGETHER, WEIGHTED_BLOCK), dtype=np.uint32)
    for start in range(0, seeds.size, WEIGHTED_BLOCK):
        stop = min(start + WEIGHTED_BLOCK, seeds.size)
        a, b, c, w = _loaded(seeds[start:stop], buckets[start:stop], lows, widths, low_seed, high_seed, low, width)
        x = _cut(weights[start:stop], least, digits[0], cut[0, : stop - start])
        y = _cut(weights[start:stop], least, digits[1], cut[1, : stop - start])
        z = _cut(weights[start:stop], least, digits[2], cut[2, : stop - start])
        for v in range(0, words.size, 2):
            _added(a, b, c, w, words, seconds, v, x, y, z, sums)
