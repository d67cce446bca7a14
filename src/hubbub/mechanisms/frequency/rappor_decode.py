"""Decoding RAPPOR: LASSO says which candidates to account for; each is then estimated beside those by least squares."""

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
_CERTAIN = 1e-6
_CHUNK = 1 << 12


def decode(rappor: Rappor, sketch: Sketch, codes: NDArray[Any]) -> tuple[Floats, Floats]:
    """The shares of the candidates, selected or not, and their variances.

    Each bit of each cohort is an equation: the unbiased share of the cohort that set it is the sum of the shares of the
    candidates that set it, a background (what everyone else sets, alike for all bits), and noise of known variance,
    by which it is divided. The LASSO's penalty is the universal one, sqrt(2 ln candidates) noise standard deviations a
    column. Without the background, rare values that nobody can tell apart would be laid to candidates by chance.

    Every candidate is estimated by least squares beside the background and the *other* candidates that were selected.
    So whether it was selected itself does not matter to its estimate, which may be negative, and to its interval: that
    of a candidate left out is as wide as that of one kept. What the selection missed, and what nobody listed, lies
    on bits at random: the residuals tell how much that is, and widen all intervals alike.

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
    kept = _select(rows, scale, target, penalty)
    return _beside(rows, scale, target, weight, kept)


def _beside(rows: Ints, scale: Floats, target: Floats, weight: Floats, kept: Ints) -> tuple[Floats, Floats]:
    """Each candidate's coefficient in the regression on it, the kept ones and the background; and its variance."""
    basis, corner = np.linalg.qr(np.column_stack([scale, *(_column(rows[one], scale) for one in kept)]))
    known = np.abs(np.diag(corner)) > _CERTAIN * np.abs(corner).max()  # two candidates of the same bits: one is enough
    if not known.all():
        return _beside(rows, scale, target, weight, kept[known[1:]])
    fitted = basis.T @ target
    rest = target - basis @ fitted
    noise = max(1.0, float(rest @ rest) / max(target.size - basis.shape[1], 1))

    value, variance = np.zeros(len(rows)), np.full(len(rows), np.inf)
    inverse = np.linalg.inv(corner)
    value[kept], variance[kept] = (inverse @ fitted)[1:], (inverse**2).sum(axis=1)[1:]
    for start in range(0, len(rows), _CHUNK):
        some = rows[start : start + _CHUNK]
        scaled = np.where(some >= 0, scale[some], 0.0)
        explained = (np.einsum("ck,ckb->cb", scaled, basis[some]) ** 2).sum(axis=1)
        own = weight[start : start + _CHUNK] - explained  # what of the candidate the others do not say already
        place = start + np.flatnonzero(own > _CERTAIN * weight[start : start + _CHUNK])
        place = place[~np.isin(place, kept)]
        own, along = own[place - start], (scaled * rest[some]).sum(axis=1)[place - start]
        value[place], variance[place] = along / own, 1 / own
    return value, noise * variance


def _select(rows: Ints, scale: Floats, target: Floats, penalty: Floats) -> Ints:
    """The candidates that the LASSO keeps; they and the background are fitted to what the other leaves, in turn."""
    from hubbub.kernels.lasso import nonnegative_lasso

    background = 0.0
    for _ in range(ROUNDS):
        share = nonnegative_lasso(rows, scale, target - background * scale, penalty)
        kept = np.flatnonzero(share)
        fitted = sum((share[one] * _column(rows[one], scale) for one in kept), np.zeros_like(target))
        background = max(float(np.mean((target - fitted) / scale)), 0.0)
    most = target.size // 2  # with as many unknowns as equations least squares would only amplify the noise
    return np.sort(kept[np.argsort(-share[kept], kind="stable")[:most]])


def _column(rows: Ints, scale: Floats) -> Floats:
    column = np.zeros_like(scale)
    hit = rows[rows >= 0]
    column[hit] = scale[hit]
    return column
