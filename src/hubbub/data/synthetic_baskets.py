"""Baskets whose items have nothing to do with each other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.data.baskets import Baskets
from hubbub.data.synthetic import categorical

_MOST_MEAN = 50.0


def independent_baskets(n: int, weights: ArrayLike, mean: float, rng: Random) -> Baskets:
    """Baskets that hold each item independently of the others.

    As many items are drawn for a basket as a Poisson distribution says, and one that is drawn twice is held once: so an
    item of the part w of all weights is held with probability 1 - e^(-mean w), whatever else is.

    Parameters
    ----------
    n
        How many baskets.
    weights
        How much more often some items are drawn than others.
    mean
        How many items are drawn for a basket, on average; at most 50.
    rng
        The randomness.

    Example:
        >>> baskets = independent_baskets(1000, [2.0, 1.0, 1.0], 1.0, Random(seed=1))
        >>> baskets.n, baskets.domain, int(baskets.support().argmax())
        (1000, 3, 0)
    """
    if isinstance(mean, bool) or not isinstance(mean, int | float) or not 0 < mean <= _MOST_MEAN:
        raise InvalidValue("mean", mean, f"a number above 0, at most {_MOST_MEAN:g}")
    most = math.ceil(mean + 20 * math.sqrt(mean) + 20)  # more than that would come up in no run of any length
    logs = [size * math.log(mean) - math.lgamma(size + 1) for size in range(most)]
    sizes = categorical(n, np.exp(np.array(logs) - max(logs)), rng)
    drawn = categorical(int(sizes.sum()), weights, rng)
    domain = np.asarray(weights).size
    pairs = np.unique(np.repeat(np.arange(n), sizes) * domain + drawn)
    held = np.bincount(pairs // domain, minlength=n)
    return Baskets(np.concatenate([[0], np.cumsum(held)]), pairs % domain, domain)
