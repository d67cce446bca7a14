"""Bounds of e^x and ln x against series summed with an error bound of their own."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.random.integers import ceil_div, exp_floor, log_fraction, log_upper

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
