"""Decoding RAPPOR: LASSO picks candidates, non-negative least squares says how frequent they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hubbub.core.sketch import Sketch
    from hubbub.mechanisms.frequency.rappor import Rappor

__all__ = ["decode"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDS = 8


def decode(rappor: Rappor, sketch: Sketch, codes: NDArray[Any]) -> tuple[Floats, Floats]:
    """The shares of the candidates, and their variances given the selection.

    Each bit of each cohort is an equation: the unbiased share of the cohort that set it is the sum of the shares of the
    candidates that set it, a background (what everyone else sets, alike for all bits), and noise of known variance,
    by which it is divided. The LASSO's penalty is the universal one, sqrt(2 ln candidates) noise standard deviations a
    column. Without the background, rare values that nobody can tell apart would be laid to candidates by chance.

    Example:
        >>> from hubbub import Random, Rappor
        >>> rappor = Rappor(epsilon=6.0, domain=3)
        >>> sketch = rappor.accumulate(rappor.randomize([0] * 5000 + [1] * 5000, Random(seed=1)))
        >>> decode(rappor, sketch, np.arange(3))[0].round(1).tolist()
        [0.5, 0.5, 0.0]
    """
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
    kept, background = _select(rows, scale, target, penalty)

    value, variance = np.zeros(len(codes)), 1 / np.maximum(weight, 1e-300)
    if kept.size:
        from scipy.optimize import nnls

        design = np.column_stack([*(_column(rows[one], scale) for one in kept), scale])
        value[kept] = nnls(design, target)[0][:-1]
        held = np.append(value[kept] > 0, background > 0)
        spread = np.diag(np.linalg.pinv(design[:, held].T @ design[:, held], hermitian=True))
        variance[kept[held[:-1]]] = spread[: int(held[:-1].sum())]
    return value, variance


def _select(rows: Ints, scale: Floats, target: Floats, penalty: Floats) -> tuple[Ints, float]:
    """The candidates that the LASSO keeps, and the background; each is fitted to what the other leaves, in turn."""
    from hubbub.kernels.lasso import nonnegative_lasso

    background = 0.0
    for _ in range(ROUNDS):
        share = nonnegative_lasso(rows, scale, target - background * scale, penalty)
        kept = np.flatnonzero(share)
        fitted = sum((share[one] * _column(rows[one], scale) for one in kept), np.zeros_like(target))
        background = max(float(np.mean((target - fitted) / scale)), 0.0)
    most = target.size // 2  # with as many unknowns as equations least squares would only amplify the noise
    return np.sort(kept[np.argsort(-share[kept], kind="stable")[:most]]), background


def _column(rows: Ints, scale: Floats) -> Floats:
    column = np.zeros_like(scale)
    hit = rows[rows >= 0]
    column[hit] = scale[hit]
    return column
