"""Asks that depend on earlier answers take their epsilon from a finite set, which a signed question can list.

An ask of any epsilon at all could tag a device: a server that asks every device at an epsilon of its own would know its
report again. Rounding down to five binary digits costs at most a sixteenth of what an ask could have taken, and nothing
where the paper's own numbers have no more digits.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

_DIGITS = 5
_HALVINGS = 8
"""A publication with less than 1/256 of the budget would be nearly all noise, and is not asked."""


def round_count(count: int) -> int:
    """The largest whole number, at most `count`, with five binary digits and zeros after them.

    Example:
        >>> [round_count(count) for count in (1, 31, 33, 100)]
        [1, 31, 32, 100]
        >>> round_count(101)
        100
    """
    spare = max(count.bit_length() - _DIGITS, 0)
    return count >> spare << spare


def finite_counts(most: int) -> tuple[int, ...]:
    """Every number that `round_count` gives for 1 to `most`.

    Example:
        >>> len(finite_counts(20)), len(finite_counts(10**6))
        (20, 270)
    """
    counts: list[int] = []
    count = 1
    while count <= most:
        counts.append(count)
        count += 1 << max(count.bit_length() - _DIGITS, 0)
    return tuple(counts)


@lru_cache(maxsize=256)
def finite_parts(total: int) -> tuple[int, ...]:
    """Every number of parts that `round_parts` gives beside 0: m/32 of the total, halved up to eight times.

    Example:
        >>> parts = finite_parts(1 << 20)
        >>> len(parts), parts[0] / 2**20, parts[-1] / 2**20
        (129, 0.00390625, 1.0)
    """
    halves = {(total * m) >> (_DIGITS + halving) for halving in range(_HALVINGS) for m in range(16, 32)}
    return tuple(sorted(halves | {total}))


def round_parts(parts: int, total: int) -> int:
    """The largest of `finite_parts(total)` that is at most `parts`; 0 if there is none.

    Example:
        >>> [round_parts(parts, 1024) for parts in (512, 300, 3)]
        [512, 288, 0]
    """
    allowed = finite_parts(total)
    place = bisect_right(allowed, parts)
    return allowed[place - 1] if place else 0
