"""Random subsets, from random words that were drawn already."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.core.uniform import bounded


def subsets(words: NDArray[np.uint64], counts: NDArray[np.int64], rng: Random) -> NDArray[np.bool_]:
    """Mark in every row as many columns as `counts` says, each set of them equally likely, from a word a column.

    Selection sampling: a column is taken with the chance of what is still to be taken over what is still to come.

    Example:
        >>> subsets(Random(seed=1).uint64(3, 4), np.array([0, 2, 4]), Random(seed=2)).sum(axis=1).tolist()
        [0, 2, 4]
    """
    left, columns = counts.copy(), words.shape[1]
    taken = np.empty(words.shape, dtype=bool)
    for column in range(columns):
        taken[:, column] = bounded(words[:, column], np.full(len(words), columns - column), rng) < left
        left -= taken[:, column]
    return taken
