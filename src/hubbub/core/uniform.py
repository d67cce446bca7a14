"""Uniform integers and uniform subsets, from random words that were drawn already."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random


def bounded(words: NDArray[np.uint64], bounds: NDArray[np.int64], rng: Random) -> NDArray[np.int64]:
    """Turn each 64-bit word into an integer below its bound, without bias.

    A word past the last whole multiple of the bound is drawn again; for bounds below 2^20 that happens to one in
    2^44 of them.
    """
    limit = bounds.astype(np.uint64)
    last = ~np.uint64(0) - (~np.uint64(0) % limit + np.uint64(1)) % limit
    words = words.copy()
    redraw = np.flatnonzero(words > last)
    while redraw.size:
        words[redraw] = rng.uint64(redraw.size)
        redraw = redraw[words[redraw] > last[redraw]]
    return (words % limit).astype(np.int64)


def subsets(words: NDArray[np.uint64], counts: NDArray[np.int64], rng: Random) -> NDArray[np.bool_]:
    """Mark `counts[i]` columns in row i, each set of that many columns equally likely, from one word a column.

    By selection sampling: a column is marked with probability (columns still to mark)/(columns still to visit).
    """
    remaining, columns = counts.copy(), words.shape[1]
    marked = np.empty(words.shape, dtype=bool)
    for column in range(columns):
        marked[:, column] = bounded(words[:, column], np.full(len(words), columns - column), rng) < remaining
        remaining -= marked[:, column]
    return marked
