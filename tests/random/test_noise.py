"""Exact samplers: noise with decay e^(-1/scale), Gaussian noise, and the bounds of e^x and ln x below them."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.core.errors import InvalidValue
from hubbub.random import noise
from hubbub.random.integers import ceil_div, exp_floor, log_fraction, log_upper
from hubbub.random.noise import gaussian_cells, geometric_cells, laplace_cells, laplace_variance, surpasses
from hubbub.random.source import Random

DIGITS = Context(prec=200)


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
    return DIGITS.multiply(Decimal(1 << 64), DIGITS.exp(DIGITS.divide(Decimal(-k), Decimal(scale))))


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
    drawn, variance = laplace_cells(20_000, 50, Random(seed=5)), laplace_variance(50)
    assert abs(drawn.mean()) < 5 * math.sqrt(variance / drawn.size)
    assert abs(drawn.var() / variance - 1) < 5 * math.sqrt(5 / drawn.size)  # the fourth moment is 6 variances squared
    assert abs(laplace_cells(20_000, 65, Random(seed=5)).var() / variance - 1) > 0.3  # it would be seen


def test_the_law_of_the_difference() -> None:
    """P(k) = (1-a)/(1+a) a^|k| for a = e^(-1/scale): summed from the exact one-sided law."""
    a = math.exp(-1 / 3)
    for k in range(6):
        summed = sum((1 - a) * a ** (i + k) * (1 - a) * a**i for i in range(500))
        assert summed == pytest.approx((1 - a) / (1 + a) * a**k, rel=1e-12)


def test_a_planted_float_floor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the exact side path, words next to a border fall on the wrong side."""
    monkeypatch.setattr(noise, "exact_floor", lambda bits, scale, rng: -1)
    word = int(border(7, 1 << 28))
    assert -1 in geometric_cells(2, 1 << 28, Words([word - 1, word + 1])).tolist()


# -- Gaussian noise --------------------------------------------------------------------------------------------------


def test_the_law_by_counting() -> None:
    """40,000 draws at sigma 2: chi squared with 12 degrees of freedom exceeds 45 in one of 100,000 runs."""
    chance = np.exp(-(np.arange(-60, 61) ** 2) / 8)
    expected = 40_000 * (chance / chance.sum())[54:67]

    def statistic(sigma: int) -> float:
        drawn = gaussian_cells(40_000, sigma, Random(seed=3))
        counts = np.array([(drawn == k).sum() for k in range(-6, 7)])
        return float(((counts - expected) ** 2 / expected).sum())

    assert statistic(2) < 45
    assert statistic(3) > 1000


def test_rejection_keeps_the_gaussian_ratio() -> None:
    """Laplace times the chance to be kept is Gaussian up to one factor, exactly in logarithms."""
    sigma = 7
    scale = sigma + 1
    logs = [
        -abs(k) / scale - (abs(k) - sigma**2 / scale) ** 2 / (2 * sigma**2) + k * k / (2 * sigma**2) for k in range(30)
    ]
    assert max(logs) - min(logs) < 1e-12


@pytest.mark.parametrize("exponent", [Fraction(1, 2), Fraction(7, 3), Fraction(20)])
def test_words_next_to_the_border_are_decided_exactly(exponent: Fraction) -> None:
    word = int(border(exponent.numerator, exponent.denominator))
    words = np.array([word - 1, word + 1], dtype=np.uint64)
    accepted = surpasses(words, np.full(2, float(exponent)), lambda place: exponent, Random(seed=1))
    assert accepted.tolist() == [True, False]


def test_bad_sigmas_are_refused() -> None:
    for sigma in (0, 1 << 28):
        with pytest.raises(InvalidValue, match="sigma"):
            gaussian_cells(1, sigma, Random(seed=1))
    assert gaussian_cells(0, 5, Random(seed=1)).size == 0
    assert math.isclose(gaussian_cells(20_000, 1 << 20, Random(seed=2)).std(), 1 << 20, rel_tol=0.03)


_UNIT = 1 << 500


def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals around e^x for x >= 0: Taylor's series of x/2^k in fixed point, squared k times."""
    halvings = max(0, math.ceil(math.log2(float(x) + 1)) + 8)
    low = math.floor(x / 2**halvings * _UNIT)
    high = low + 1
    bounds = []
    for part, rounding in ((low, 0), (high, 1)):
        term, total = _UNIT, _UNIT
        for k in range(1, 90):
            term = term * part // _UNIT // k + rounding
            total += term
        total += 2 * term * rounding  # the tail is below its first term, doubled
        for _ in range(halvings):
            total = total * total // _UNIT + rounding
        bounds.append(Fraction(total, _UNIT))
    return bounds[0], bounds[1]


def test_the_reference_knows_e():
    low, high = exp_bounds(Fraction(1))
    assert low < high
    assert float(low) == float(high) == math.e
    assert high - low < Fraction(1, 10**100)


EXPONENTS = [1e-12, 1e-6, 0.01, 0.5, 1.0, math.log(2), 2.0, 10.0, 61.7, 400.0, 1000.0]


@pytest.mark.parametrize("epsilon", EXPONENTS)
def test_exp_floor_is_just_below(epsilon: float):
    low, high = exp_bounds(Fraction(epsilon))
    floor = exp_floor(epsilon)
    assert floor < low
    assert (high - floor) / high < Fraction(1, 10**54)


@given(st.fractions(0, 40, max_denominator=10**9))
def test_exp_floor_of_fractions(exponent: Fraction):
    assert 0 < exp_bounds(exponent)[0] - exp_floor(exponent) < Fraction(1, 10**30)


RATIOS = [
    Fraction(2),
    Fraction(3),
    1 + Fraction(1, 2**64),
    1 + Fraction(1, 10**40),
    Fraction(10**400),
    Fraction(2**64 - 1, 2**64 - 3),
    Fraction(271828182845904523536, 10**20),
]


def assert_smallest_float_above(ratio: Fraction, upper: float) -> None:
    assert exp_bounds(Fraction(upper))[0] >= ratio
    below = math.nextafter(upper, 0)
    # The next float below falls short of ln(ratio), but for the margin of 1e-58.
    assert exp_bounds(Fraction(below))[0] <= ratio * (1 + Fraction(1, 10**50))


@pytest.mark.parametrize("ratio", RATIOS)
def test_log_upper_is_the_smallest_float_above(ratio: Fraction):
    assert_smallest_float_above(ratio, log_upper(ratio))


@given(st.integers(1, 1 << 64), st.integers(1, 1 << 64))
def test_log_upper_of_thresholds(a: int, b: int):
    ratio = Fraction(max(a, b), min(a, b))
    if ratio > 1:
        assert_smallest_float_above(ratio, log_upper(ratio))


def test_log_upper_of_ratios_below_one():
    assert log_upper(Fraction(1)) == 0.0
    assert math.log(0.5) <= log_upper(Fraction(1, 2)) <= math.nextafter(math.log(0.5), 0)
    for ratio in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="above 0"):
            log_upper(ratio)


def test_what_exp_floor_gives_never_costs_more_than_epsilon():
    for epsilon in EXPONENTS:
        assert log_upper(exp_floor(epsilon)) <= epsilon


def test_log_fraction():
    assert log_fraction(Fraction(0)) == -math.inf
    assert log_fraction(Fraction(1)) == 0.0
    for ratio in (Fraction(1, 3), Fraction(1, 10**30), Fraction(2**63 - 1, 2**63)):
        assert log_fraction(ratio) == pytest.approx(
            math.log(ratio.numerator) - math.log(ratio.denominator), rel=1e-9, abs=1e-15
        )
    assert log_fraction(Fraction(2**64 - 1, 2**64)) == pytest.approx(-(2.0**-64), rel=1e-15)


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=1000), st.fractions(min_value=Fraction(1, 1000), max_value=1000)
)
def test_ceil_div(a: Fraction, b: Fraction):
    quotient = ceil_div(a, b)
    assert (quotient - 1) * b < a <= quotient * b
