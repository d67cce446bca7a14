"""Noise whose decay is exactly e^(-1/scale): every border between two numbers is where it should be."""

from __future__ import annotations

import math
from decimal import Context, Decimal

import numpy as np
import pytest

from hubbub.random import noise as exponential
from hubbub.random.noise import geometric_cells, laplace_cells, laplace_variance
from hubbub.random.source import Random

_DIGITS = Context(prec=200)


class Words(Random):
    """Gives words that were chosen, and then the bytes that were chosen."""

    def __init__(self, words: list[int], more: int = 0) -> None:
        super().__init__(seed=1)
        self._words, self._more = words, more

    def uint64(self, *shape: int) -> np.ndarray:
        return np.array(self._words, dtype=np.uint64)

    def bytes(self, size: int) -> bytes:
        return self._more.to_bytes(size, "little")


def border(k: int, scale: int) -> Decimal:
    """2^64 e^(-k/scale): words above it give fewer than k cells."""
    exponent = _DIGITS.divide(Decimal(-k), Decimal(scale))
    return _DIGITS.multiply(Decimal(1 << 64), _DIGITS.exp(exponent))


@pytest.mark.parametrize("scale", [1, 3, 1000, 123_456_789, 1 << 28])
def test_every_word_on_either_side_of_a_border_falls_on_its_side(scale: int) -> None:
    """The number is at least k exactly when U < e^(-k/scale): then P(k) is exactly that of the geometric law."""
    for k in sorted({1, 2, 7, scale, 5 * scale + 1, 30 * scale}):
        word = int(border(k, scale))
        below, above = geometric_cells(2, scale, Words([word - 1, word + 1])).tolist()
        assert below >= k > above
        # In the word of the border itself, further bits decide.
        rest = int((border(k, scale) - word) * (1 << 64))
        assert geometric_cells(1, scale, Words([word], rest - 1)).tolist() == [k]
        assert geometric_cells(1, scale, Words([word], rest + 1)).tolist() == [k - 1]


def test_the_extreme_words() -> None:
    assert geometric_cells(1, 5, Words([(1 << 64) - 1], (1 << 64) - 1)).tolist() == [0]
    assert geometric_cells(1, 5, Words([0], 1 << 63)).tolist() == [math.floor(5 * 65 * math.log(2))]


def test_moments_of_the_two_sided_noise() -> None:
    """20,000 draws: 5 standard errors either way, which chance alone exceeds once in a million runs."""
    noise = laplace_cells(20_000, 50, Random(seed=5))
    variance = laplace_variance(50)
    assert abs(noise.mean()) < 5 * math.sqrt(variance / noise.size)
    assert abs(noise.var() / variance - 1) < 5 * math.sqrt(5 / noise.size)  # the fourth moment is 6 variances squared
    assert abs(laplace_cells(20_000, 65, Random(seed=5)).var() / variance - 1) > 0.3  # it would be seen


def test_the_law_of_the_difference() -> None:
    """P(k) = (1-a)/(1+a) a^|k| for a = e^(-1/scale): summed from the exact one-sided law."""
    a = math.exp(-1 / 3)
    for k in range(6):
        summed = sum((1 - a) * a ** (i + k) * (1 - a) * a**i for i in range(500))
        assert summed == pytest.approx((1 - a) / (1 + a) * a**k, rel=1e-12)


def test_a_planted_float_floor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the exact side path, words next to a border fall on the wrong side."""
    monkeypatch.setattr(exponential, "_settle", lambda bits, scale, rng: -1)
    word = int(border(7, 1 << 28))
    assert -1 in geometric_cells(2, 1 << 28, Words([word - 1, word + 1])).tolist()
