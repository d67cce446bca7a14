"""Values cut into segments."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["cuts_of", "short_codes"]

_PRIME = (1 << 61) - 1


def cuts_of(bits: int, segments: int) -> list[tuple[int, int]]:
    """Where each of so many segments of nearly equal length starts and stops.

    Example:
        >>> cuts_of(10, 3)
        [(0, 4), (4, 7), (7, 10)]
    """
    ends = [-(-bits * segment // segments) for segment in range(segments + 1)]
    return list(pairwise(ends))


def short_codes(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Values as 64-bit codes for a hash function; those that are longer, modulo a prime.

    Example:
        >>> short_codes(np.array([1 << 70, 3], dtype=object)).tolist()
        [512, 3]
    """
    return (values % _PRIME).astype(np.uint64) if values.dtype == object else values.astype(np.uint64)
