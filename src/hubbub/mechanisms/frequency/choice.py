"""The random choice that direct encoding and local hashing share: the truth, or one of the others, from 64 bits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core.exact import ceil_div, exp_floor

__all__ = ["TWO_64", "choose", "other_weight", "truth_weight"]

TWO_64 = 1 << 64


def other_weight(epsilon: float, options: int) -> int:
    """Of 2^64, the share of each false answer (Eq 3.4): 1/(e^epsilon + options - 1), rounded up, toward privacy."""
    return ceil_div(TWO_64, exp_floor(epsilon) + options - 1)


def truth_weight(other: int, options: int) -> int:
    """The share of the truth: what the other options leave of 2^64."""
    return TWO_64 - (options - 1) * other


def choose(truth: NDArray[np.int64], draws: NDArray[np.uint64], other: int, options: int) -> NDArray[np.int64]:
    """Turn 64 random bits each into the truth or one of the other options, with exactly the stored shares."""
    keep = truth_weight(other, options)
    if options == 2:
        return truth ^ (draws >= np.uint64(keep))
    index = ((draws - np.uint64(keep)) // np.uint64(other)).astype(np.int64)  # wraps where the truth is kept
    index += index >= truth
    return np.where(draws < np.uint64(keep), truth, index)


def choice_rates(other: int, options: int) -> tuple[Fraction, Fraction]:
    """The exact probabilities of the truth and of one other option."""
    return Fraction(truth_weight(other, options), TWO_64), Fraction(other, TWO_64)
