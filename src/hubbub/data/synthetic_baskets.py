"""Synthetic baskets whose items are independent of each other."""

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

    The number of items drawn for a basket has a Poisson distribution; an item that is drawn twice is held once. So an
    item with the share w of all weights is held with probability 1 - e^(-mean w), independently of the others.

    Parameters
    ----------
    n
        The number of baskets.
    weights
        The weights with which items are drawn.
    mean
        The mean number of items drawn for a basket; at most 50.
    rng
        The randomness.
    """
    if isinstance(mean, bool) or not isinstance(mean, int | float) or not 0 < mean <= _MOST_MEAN:
        raise InvalidValue("mean", mean, f"a number above 0, at most {_MOST_MEAN:g}")
    most = math.ceil(mean + 20 * math.sqrt(mean) + 20)  # the chance of more is negligible in any run
    logs = [size * math.log(mean) - math.lgamma(size + 1) for size in range(most)]
    sizes = categorical(n, np.exp(np.array(logs) - max(logs)), rng)
    drawn = categorical(int(sizes.sum()), weights, rng)
    domain = np.asarray(weights).size
    pairs = np.unique(np.repeat(np.arange(n), sizes) * domain + drawn)
    basket_sizes = np.bincount(pairs // domain, minlength=n)
    return Baskets(np.concatenate([[0], np.cumsum(basket_sizes)]), pairs % domain, domain)
