"""Numpy's random numbers for simulations, from a source of ours."""

from __future__ import annotations

import numpy as np

from hubbub.core.random import Random


def generator(rng: Random) -> np.random.Generator:
    """A generator of numpy whose seed is drawn: it has binomials, and permutations that are fast.

    Example:
        >>> generator(Random(seed=1)).permutation(3).size
        3
    """
    return np.random.default_rng(np.frombuffer(rng.bytes(16), dtype=np.uint32))
