"""Decoding RAPPOR: LASSO over half of the cohorts selects candidates, least squares over the other half estimates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hubbub.core.sketch import Sketch
    from hubbub.mechanisms.frequency.rappor import Rappor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDS = 8
_CERTAIN = 1e-6
_CHUNK = 1 << 12


class _Equations(NamedTuple):
    """The equations of some cohorts: each candidate's rows, one over the noise of each row, the scaled right side."""

    rows: Ints
    scale: Floats
    target: Floats

    @property
    def weight(self) -> Floats:
        """The squared length of each candidate's column."""
        return np.asarray(np.where(self.rows >= 0, self.scale[self.rows] ** 2, 0.0).sum(axis=1))

    def column(self, candidate: Any) -> Floats:
        """The coefficients of a candidate in every row."""
        column = np.zeros_like(self.scale)
        hit = self.rows[candidate][self.rows[candidate] >= 0]
        column[hit] = self.scale[hit]
        return column


def decode(rappor: Rappor, sketch: Sketch, codes: NDArray[Any]) -> tuple[Floats, Floats]:
    """The shares of the candidates, selected or not, and their variances.

    Each bit of each cohort is an equation: the unbiased share of the cohort that set it is the sum of the shares of the
    candidates that set it, a background (what everyone else sets, alike for all bits), and noise of known variance,
    by which it is divided. There are too many candidates to solve for all. So a LASSO over half of the cohorts selects
    those that matter, and in the other half every candidate, selected or not, is estimated by least squares beside the
    selected ones and the background; then the other way round, and the two estimates are pooled. The noise that led to
    the selection is not the noise of the estimate. So the estimate is unbiased (and may be negative), and its interval
    allows for the selection. Values that were not selected, or not listed, set bits at random: the residuals tell how
    many there are, and widen all intervals.
    """
    cohorts = np.flatnonzero(sketch.counts[:, -1])
    halves = [_equations(rappor, sketch, codes, cohorts[first::2]) for first in (0, 1)]
    precision, total, spread = np.zeros(len(codes)), np.zeros(len(codes)), np.zeros(len(codes))
    for half, other in zip(halves, halves[::-1], strict=True):
        if half.target.size:
            selected = _select(other) if other.target.size else np.empty(0, dtype=np.int64)
            own, value, noise = _least_squares(half, selected)
            precision, total, spread = precision + own, total + own * value, spread + own * noise
    estimable = precision > 0
    safe = np.where(estimable, precision, 1.0)
    return np.where(estimable, total / safe, 0.0), np.where(estimable, spread / safe**2, np.inf)


def _equations(rappor: Rappor, sketch: Sketch, codes: NDArray[Any], cohorts: Ints) -> _Equations:
    p, q = (float(rate) for rate in rappor.rates)
    sizes = sketch.counts[cohorts, -1].astype(np.float64)[:, None]
    share = (sketch.counts[cohorts, :-1] / sizes - q) / (p - q)
    noise = np.sqrt(q * (1 - q) / sizes) / (p - q) * np.ones_like(share)  # p = 1 - q: the same at any share
    places = rappor.filters(cohorts[None, :], codes[:, None])  # candidate, cohort, hash
    rows = np.where(places >= 0, places + rappor.bits * np.arange(cohorts.size)[None, :, None], -1)
    scale = 1 / noise.reshape(-1)
    return _Equations(rows.reshape(len(codes), -1), scale, share.reshape(-1) * scale)


def _least_squares(half: _Equations, selected: Ints) -> tuple[Floats, Floats, float]:
    """Each candidate's precision and coefficient beside the selected ones and the background; and the noise."""
    basis, corner = np.linalg.qr(np.column_stack([half.scale, *(half.column(candidate) for candidate in selected)]))
    apart = np.abs(np.diag(corner)) > _CERTAIN * np.abs(corner).max()
    if not apart.all():  # two candidates of the same bits: the first stands for both
        return _least_squares(half, selected[apart[1:]])
    fitted = basis.T @ half.target
    rest = half.target - basis @ fitted
    noise = max(1.0, float(rest @ rest) / max(half.target.size - basis.shape[1], 1))

    own, value, weight = np.zeros(len(half.rows)), np.zeros(len(half.rows)), half.weight
    for start in range(0, len(half.rows), _CHUNK):
        rows = half.rows[start : start + _CHUNK]
        scaled = np.where(rows >= 0, half.scale[rows], 0.0)
        explained = np.einsum("ck,ckb->cb", scaled, basis[rows])  # what the others say of the candidate already
        own[start : start + _CHUNK] = weight[start : start + _CHUNK] - (explained**2).sum(axis=1)
        value[start : start + _CHUNK] = (scaled * rest[rows]).sum(axis=1)
    own = np.where(own > _CERTAIN * weight, own, 0.0)
    value = np.where(own > 0, value / np.where(own > 0, own, 1.0), 0.0)
    inverse = np.linalg.inv(corner)
    own[selected], value[selected] = 1 / (inverse**2).sum(axis=1)[1:], (inverse @ fitted)[1:]
    return own, value, noise


def _select(half: _Equations) -> Ints:
    """The candidates that the LASSO selects. They and the background are fitted in turn, each to the rest of the other.

    The penalty is the universal one, sqrt(2 ln candidates) noise standard deviations a column. Without the background,
    rare values that cannot be told apart would be attributed to some candidates by chance.
    """
    from hubbub.kernels.lasso import nonnegative_lasso

    penalty = np.sqrt(half.weight) * math.sqrt(2 * math.log(max(2, len(half.rows))))
    background = 0.0
    for _ in range(ROUNDS):
        share = nonnegative_lasso(half.rows, half.scale, half.target - background * half.scale, penalty)
        selected = np.flatnonzero(share)
        fitted = sum((share[candidate] * half.column(candidate) for candidate in selected), np.zeros_like(half.target))
        background = max(float(np.mean((half.target - fitted) / half.scale)), 0.0)
    most = half.target.size // 2  # with as many unknowns as equations least squares would only amplify the noise
    return np.sort(selected[np.argsort(-share[selected], kind="stable")[:most]])
