"""Discrete Gaussian noise: its distribution, and exact decisions where floats are too inexact."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.random.noise import gaussian_cells, surpasses
from hubbub.random.source import Random


def test_the_law_by_counting() -> None:
    """40,000 draws at sigma 2: chi squared with 12 degrees of freedom exceeds 45 in one of 100,000 runs."""
    drawn = gaussian_cells(40_000, 2, Random(seed=3))
    support = np.arange(-6, 7)
    chance = np.exp(-(np.arange(-60, 61) ** 2) / 8)
    chance = (chance / chance.sum())[54:67]
    counts = np.array([(drawn == k).sum() for k in support])
    statistic = ((counts - 40_000 * chance) ** 2 / (40_000 * chance)).sum()
    assert statistic < 45
    wider = gaussian_cells(40_000, 3, Random(seed=3))
    counts = np.array([(wider == k).sum() for k in support])
    assert ((counts - 40_000 * chance) ** 2 / (40_000 * chance)).sum() > 1000


def test_rejection_keeps_the_gaussian_ratio() -> None:
    """Laplace times the chance to be kept is Gaussian up to one factor, exactly in logarithms."""
    sigma = 7
    scale = sigma + 1
    logs = [
        -abs(k) / scale - (abs(k) - sigma**2 / scale) ** 2 / (2 * sigma**2) + k * k / (2 * sigma**2) for k in range(30)
    ]
    assert max(logs) - min(logs) < 1e-12


@pytest.mark.parametrize("exponent", [Fraction(1, 2), Fraction(7, 3), Fraction(20)])
def test_words_beside_the_border_are_decided_exactly(exponent: Fraction) -> None:
    digits = Context(prec=80)
    border = digits.multiply(
        Decimal(1 << 64), digits.exp(digits.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator)))
    )
    word = int(border)
    words = np.array([word - 1, word + 1], dtype=np.uint64)
    accepted = surpasses(words, np.full(2, float(exponent)), lambda place: exponent, Random(seed=1))
    assert accepted.tolist() == [True, False]


def test_bad_sigmas_are_refused() -> None:
    for sigma in (0, 1 << 28):
        with pytest.raises(InvalidValue, match="sigma"):
            gaussian_cells(1, sigma, Random(seed=1))
    assert gaussian_cells(0, 5, Random(seed=1)).size == 0
    assert math.isclose(gaussian_cells(20_000, 1 << 20, Random(seed=2)).std(), 1 << 20, rel_tol=0.03)
