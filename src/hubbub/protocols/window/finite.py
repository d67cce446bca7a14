"""Rounding of epsilons that depend on earlier answers to a finite set, which a signed question can list.

If any epsilon could be asked, a server could ask every device with a different epsilon and so recognise its report.
Rounding down to five binary digits costs at most a sixteenth of what an ask could have taken, and nothing where the
paper's own numbers have no more digits.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

_DIGITS = 5
_HALVINGS = 8
"""A publication with less than 1/256 of the budget would be nearly all noise, and is not made."""


def round_count(count: int) -> int:
    """The largest whole number of at most `count` that has only zeros after its first five binary digits."""
    spare = max(count.bit_length() - _DIGITS, 0)
    return count >> spare << spare


def finite_counts(most: int) -> tuple[int, ...]:
    """All results of `round_count` for the numbers from 1 to `most`."""
    counts: list[int] = []
    count = 1
    while count <= most:
        counts.append(count)
        count += 1 << max(count.bit_length() - _DIGITS, 0)
    return tuple(counts)


@lru_cache(maxsize=256)
def finite_parts(total: int) -> tuple[int, ...]:
    """All results of `round_parts` except 0: m/32 of the total for m from 16 to 31, halved up to seven times; and all."""
    fractions = {(total * m) >> (_DIGITS + halving) for halving in range(_HALVINGS) for m in range(16, 32)}
    return tuple(sorted(fractions | {total}))


def round_parts(parts: int, total: int) -> int:
    """The largest of `finite_parts(total)` that is at most `parts`; 0 if there is none."""
    allowed = finite_parts(total)
    place = bisect_right(allowed, parts)
    return allowed[place - 1] if place else 0
