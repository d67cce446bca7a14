"""Discrete Gaussian noise, exact: P(k) in proportion to e^(-k^2/(2 sigma^2)), sigma a whole number of cells."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.exponential import MOST_SCALE, laplace_cells, surpasses
from hubbub.core.random import Random


def gaussian_cells(count: int, sigma: int, rng: Random) -> NDArray[np.int64]:
    """Discrete Gaussian noise in cells, by rejection from the discrete Laplace distribution (Canonne, Kamath and
    Steinke 2020).

    A query of integers that moves by at most D in the L2 norm then costs exactly D^2/(2 sigma^2) of rho (zCDP).
    """
    if not 1 <= sigma < MOST_SCALE:
        raise InvalidValue("sigma", sigma, f"an integer from 1 to {MOST_SCALE - 1}")
    scale = sigma + 1
    parts: list[NDArray[np.int64]] = []
    missing = count
    while missing > 0:
        candidates = laplace_cells(missing + missing // 2 + 16, scale, rng)
        words = rng.uint64(candidates.size)
        off = np.abs(candidates) - sigma**2 / scale
        accepts = surpasses(words, off * off / (2 * float(sigma) ** 2), partial(_exponent, candidates, sigma), rng)
        accepted = candidates[accepts]
        parts.append(accepted)
        missing -= accepted.size
    return np.concatenate(parts)[:count] if parts else np.empty(0, dtype=np.int64)


def _exponent(candidates: NDArray[np.int64], sigma: int, place: int) -> Fraction:
    """The exact exponent: a candidate y is accepted with probability e^-((|y| - sigma^2/t)^2 / (2 sigma^2)), t = sigma
    + 1."""
    off = abs(int(candidates[place])) - Fraction(sigma**2, sigma + 1)
    return off * off / (2 * sigma**2)
