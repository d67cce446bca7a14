"""Section 5.2.1 on paper: with how much more a sampled item may be reported."""

from __future__ import annotations

import math

from hubbub.core.errors import check_integer

LENGTHS = (2, 5, 10, 20, 50, 100)
"""The lengths to which sets are padded in the tables of chapter 5."""


def amplified(epsilon: float, length: int) -> float:
    """The budget eps' of GRR that spends epsilon on a set padded to this length (Theorem 5.2.1)."""
    check_integer("length", length, 1)
    return math.log1p(length * math.expm1(epsilon))
