"""Integers next to a sketch that tell forged reports from genuine ones, whatever the values of people are.

Of a unary encoding, and of local hashing with fresh seeds, a genuine report supports the sender's own value with p, and
each other one with q, independently. So how *many* values a report supports has one distribution, whoever sent it; and
for two values i and j, (s_i - q)(s_j - q) has mean 0 in every genuine report. A screen is what both need of many
reports: how many reports support each number of values (of unary encodings only: a hash function is not that random),
and how many support both values of each pair. It adds up like a sketch.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeGuard

import numpy as np

from hubbub.core.hashing import bucket, hash32, value_words
from hubbub.core.reports import Bools, Ints, Reports, Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.function_list import FunctionList
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.mechanisms.frequency.unary import Unary
from hubbub.random.integers import unpack

MOST_PAIRS = 128
"""The most values whose pairs are counted: 8,128 integers next to a sketch of 128."""
_CHUNK = 1 << 13

Screened = Unary | LocalHashing
"""The mechanisms whose reports can be screened."""


def can_screen(mechanism: ReportFormat) -> TypeGuard[Screened]:
    """Whether forged reports of a mechanism can differ from genuine ones, and are looked for."""
    if not isinstance(mechanism, Unary | LocalHashing) or isinstance(mechanism, FunctionList):
        return False
    return not mechanism.is_open and mechanism.size > 2 and (isinstance(mechanism, Unary) or counts_pairs(mechanism))


def counts_pairs(mechanism: Screened) -> bool:
    """Whether the screen counts pairs of values."""
    return mechanism.size <= MOST_PAIRS


def sizes_counted(mechanism: Screened) -> int:
    """Of how many numbers of values the screen counts the reports that support so many."""
    return mechanism.size + 1 if isinstance(mechanism, Unary) else 0


def screen(mechanism: Screened, reports: Reports) -> Ints:
    """The screen of some reports: the sizes, then the pairs in the order of `numpy.triu_indices`."""
    size, sizes = mechanism.size, sizes_counted(mechanism)
    counts = np.zeros(sizes, dtype=np.int64)
    both = np.zeros((size, size))
    for start in range(0, len(reports), _CHUNK):
        supports = _supports(mechanism, reports[start : start + _CHUNK])
        if sizes:
            counts += np.bincount(supports.sum(axis=1, dtype=np.int64), minlength=sizes)
        if counts_pairs(mechanism):
            numbers = supports.astype(np.float32)
            both += numbers.T @ numbers  # whole numbers below 2^24: exact
    pairs = both[np.triu_indices(size, 1)] if counts_pairs(mechanism) else np.zeros(0)
    return np.concatenate([counts, np.rint(pairs).astype(np.int64)])


def with_screen(mechanism: ReportFormat, reports: Reports, sketch: Sketch) -> Sketch:
    """The sketch of these reports with their screen; as it is where the mechanism has none, or some are fakes."""
    if sketch.fakes or not can_screen(mechanism) or not len(reports):
        return sketch
    return Sketch(sketch.spec_id, sketch.n, sketch.counts, screen=screen(mechanism, reports))


def _supports(mechanism: Screened, reports: Reports) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Whether each report (row) supports each value (column)."""
    if isinstance(mechanism, Unary):
        return unpack(reports.private["bits"], mechanism.size)
    codes = np.arange(mechanism.size, dtype=np.uint64)
    hashed = bucket(hash32(reports.public["seed"][:, None], codes[None, :]), mechanism.buckets)
    return np.asarray(hashed == reports.private["bucket"][:, None], dtype=np.uint8)


_RELATIONS = 64


@lru_cache(maxsize=16)
def independent_pairs(size: int) -> Bools:
    """For each pair of values, in the order of `numpy.triu_indices`: whether no third one tells of both together.

    The hashes of three values are independent over the seeds but for integer relations between their words, of small
    numbers that add up to 0: h(x) = (s1 + a)(s2 + b), and the mean of exp(2 pi i (r h(i) + r' h(j) + r'' h(x)) / 2^32)
    is 0 unless r a(i) + r' a(j) + r'' a(x) is 0, and so for b. Buckets feel numbers past 64 by less than 1e-5. Such
    triples are few, and known.
    """
    first, second = (words.astype(np.int64) for words in value_words(np.arange(size, dtype=np.uint64)))
    numbers = np.arange(1, _RELATIONS + 1)
    allowed = np.ones((size, size), dtype=bool)
    of_value = np.tile(np.repeat(np.arange(size), _RELATIONS), 2)
    for value in range(size):
        sums = [np.multiply.outer(words - words[value], numbers) for words in (first, second)]
        keys = [np.concatenate([each.ravel(), -each.ravel()]) & 0xFFFFFFFF for each in sums]
        joined = keys[0].astype(np.uint64) << np.uint64(32) | keys[1].astype(np.uint64)
        order = np.argsort(joined, kind="stable")
        for apart in (1, 2):  # equal numbers are next to each other
            same = joined[order][apart:] == joined[order][:-apart]
            one, other = of_value[order][apart:][same], of_value[order][:-apart][same]
            different = (one != other) & (one != value) & (other != value)
            allowed[one[different], other[different]] = allowed[other[different], one[different]] = False
    return np.asarray(allowed[np.triu_indices(size, 1)])
