"""A numpy generator for simulations, seeded by a `Random`."""

import numpy as np

from hubbub.random.source import Random


def generator(rng: Random) -> np.random.Generator:
    """A numpy generator with a seed drawn from `rng`: it has binomials, and fast permutations."""
    return np.random.default_rng(np.frombuffer(rng.bytes(16), dtype=np.uint32))
