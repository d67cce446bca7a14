"""Mechanisms that give every possible report one of two weights: `2^bits` if it is preferred, `least` if not."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hubbub.core.errors import InvalidValue
from hubbub.core.exact import ceil_div, exp_floor

MOST_WEIGHT_BITS = 1 << 11


def resolve_two_weights(mechanism: Any, epsilon: float | Fraction, precision: int = 64) -> None:
    """Choose the fields `bits` and `least` of a mechanism where they are 0, and check them.

    `least` is e^-epsilon of 2^bits, rounded up, and has at least `precision` bits.
    """
    if mechanism.bits == 0:
        mechanism._set("bits", 1 + precision + int(float(epsilon) / math.log(2)))
    mechanism._integer("bits", 1, MOST_WEIGHT_BITS)
    if mechanism.least == 0:
        mechanism._set("least", ceil_div(1 << mechanism.bits, exp_floor(epsilon)))
    if mechanism.least == 1 << mechanism.bits:
        raise InvalidValue("epsilon", mechanism.epsilon, f"an epsilon that {precision}-bit weights can tell from 0")
    mechanism._integer("least", 1, (1 << mechanism.bits) - 1)


def search_power(epsilon: float) -> float:
    """e^epsilon for choosing parameters: limited to a range outside which no choice changes and floats overflow."""
    return math.exp(min(max(epsilon, 1e-6), 140.0))
