"""Decoding RAPPOR: LASSO picks candidates, least squares says how frequent they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hubbub.core.sketch import Sketch
    from hubbub.mechanisms.frequency.rappor import Rappor

__all__ = ["decode"]


def decode(rappor: Rappor, sketch: Sketch, codes: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The shares of the candidates, and their variances given the selection.

    Each bit of each cohort is an equation: the unbiased share of the cohort that set it is the sum of the shares of the
    candidates that set it, plus noise of known variance. Each is divided by its standard error; the penalty
    is the universal one, sqrt(2 ln candidates) noise standard deviations a column.

    Example:
        >>> from hubbub import Random, Rappor
        >>> rappor = Rappor(epsilon=6.0, domain=3)
        >>> sketch = rappor.accumulate(rappor.randomize([0] * 5000 + [1] * 5000, Random(seed=1)))
        >>> decode(rappor, sketch, np.arange(3))[0].round(1).tolist()
        [0.5, 0.5, 0.0]
    """
    from hubbub.kernels.lasso import nonnegative_lasso

    p, q = (float(rate) for rate in rappor.rates)
    heard = np.flatnonzero(sketch.counts[:, -1])
    sizes = sketch.counts[heard, -1].astype(np.float64)[:, None]
    share = (sketch.counts[heard, :-1] / sizes - q) / (p - q)
    spread = np.sqrt(q * (1 - q) / sizes) / (p - q) * np.ones_like(share)  # p = 1 - q: the same at any share
    scale = 1 / spread.reshape(-1)
    target = share.reshape(-1) * scale

    places = rappor.filters(heard[None, :], codes[:, None])  # candidate, cohort, hash
    rows = np.where(places >= 0, places + rappor.bits * np.arange(heard.size)[None, :, None], -1)
    rows = rows.reshape(len(codes), -1)
    weight = np.where(rows >= 0, scale[rows] ** 2, 0.0).sum(axis=1)
    penalty = np.sqrt(weight) * math.sqrt(2 * math.log(max(2, len(codes))))
    kept = np.flatnonzero(nonnegative_lasso(rows, scale, target, penalty) > 0)

    value, variance = np.zeros(len(codes)), 1 / np.maximum(weight, 1e-300)
    if kept.size:
        design = np.zeros((target.size, kept.size))
        for column, candidate in enumerate(kept):
            hit = rows[candidate][rows[candidate] >= 0]
            design[hit, column] = scale[hit]
        gram = np.linalg.pinv(design.T @ design, hermitian=True)
        value[kept] = gram @ (design.T @ target)
        variance[kept] = np.diag(gram)
    return value, variance
