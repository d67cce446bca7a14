"""Sets of codes of a column, as runs of neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from hubbub.core.errors import InvalidValue
from hubbub.protocols.ranges.dimension import Selection

Runs = tuple[tuple[int, int], ...]
"""The first and the last code of each run, in rising order, with a gap between any two."""
MOST_LISTED = 1 << 20
"""Several runs of more codes than this together are too many for one condition."""


def runs_of(pairs: Iterable[tuple[int, int]]) -> Runs:
    """Any first and last codes as runs; pairs whose first is above its last are empty."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pair for pair in pairs if pair[0] <= pair[1]):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def both(left: Runs, right: Runs) -> Runs:
    """The codes that are in both."""
    return runs_of((max(a, c), min(b, d)) for a, b in left for c, d in right)


def without(left: Runs, right: Runs) -> Runs:
    """The codes of the first that are not in the second."""
    if not left:
        return ()
    ends = [(left[0][0] - 1, left[0][0] - 1), *right, (left[-1][1] + 1, left[-1][1] + 1)]
    gaps = [(before[1] + 1, after[0] - 1) for before, after in pairwise(runs_of(ends))]
    inside = (left[0][0], left[-1][1])
    return both(left, runs_of((max(low, inside[0]), min(high, inside[1])) for low, high in gaps))


def size_of(runs: Runs) -> int:
    """How many codes there are."""
    return sum(high - low + 1 for low, high in runs)


def as_selection(runs: Runs, size: int) -> Selection:
    """What a box says of a dimension of that size."""
    if runs == ((0, size - 1),):
        return None
    if len(runs) == 1:
        return runs[0]
    if size_of(runs) > MOST_LISTED:
        raise InvalidValue("condition", size_of(runs), f"at most {MOST_LISTED:,} values with gaps between")
    return frozenset(code for low, high in runs for code in range(low, high + 1))
