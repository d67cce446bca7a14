"""Cutting values into segments, and shortening them for a hash function."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PRIME = (1 << 61) - 1


def cuts_of(bits: int, segments: int) -> list[tuple[int, int]]:
    """The start and the end of each of `segments` segments of nearly equal length."""
    ends = [-(-bits * segment // segments) for segment in range(segments + 1)]
    return list(pairwise(ends))


def short_codes(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Values of any length as codes of 61 bits for a hash function: their remainders modulo a prime."""
    return np.asarray(values % (_PRIME if values.dtype == object else np.uint64(_PRIME)), dtype=np.uint64)
