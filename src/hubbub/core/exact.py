"""Exact arithmetic for privacy: rational bounds of e^x, logarithms rounded outward."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

_DIGITS = 60
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR, Emin=-999999, Emax=999999)
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emin=-999999, Emax=999999)
_ULP = Fraction(1, 10 ** (_DIGITS - 2))
_KEPT = 1 << 12  # results of each function: planning and auditing ask for the same few again and again


@lru_cache(_KEPT)
def exp_floor(exponent: float | Fraction) -> Fraction:
    """A rational just below e^exponent: a likelihood ratio that a mechanism may use."""
    exact = Fraction(exponent)
    x = _DOWN.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    # decimal's exp is correctly rounded; a few relative units in the 58th digit cover it, the division and log_upper's.
    return Fraction(_DOWN.exp(x)) * (1 - 3 * _ULP * max(1, abs(int(x))))


@lru_cache(_KEPT)
def log_upper(ratio: Fraction) -> float:
    """The smallest float that is surely at least ln(ratio)."""
    if ratio <= 0:
        raise ValueError("the ratio of two probabilities is above 0")
    if ratio == 1:
        return 0.0
    rounded = _ln(ratio)
    logarithm = Fraction(rounded) + _ULP * max(1, abs(int(rounded)))
    nearest = float(logarithm)
    return nearest if Fraction(nearest) >= logarithm else math.nextafter(nearest, math.inf)


@lru_cache(_KEPT)
def log_fraction(probability: Fraction) -> float:
    """ln of an exact probability, to the nearest float; -inf for 0."""
    return -math.inf if probability == 0 else float(_ln(probability))


def ceil_div(numerator: int | Fraction, denominator: int | Fraction) -> int:
    """The quotient of two positive rationals, rounded up."""
    return math.ceil(Fraction(numerator) / Fraction(denominator))


def _ln(ratio: Fraction) -> Decimal:
    quotient = _UP.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    return _UP.ln(quotient)
