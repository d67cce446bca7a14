"""What forged reports can do, in words and in a plan: how far is too far."""

from __future__ import annotations

FORGED = 0.01
"""The part of all reports that is taken for forged unless another is given."""

_MANY = 10
_TWICE = 2


def warns(weight: float, beside: float) -> bool:
    """Whether a mechanism deserves a warning: a forged report counts for more than ten people, and needlessly.

    Needlessly: more than twice what it counts for under the mechanism that would be chosen otherwise. At d = 3 e^eps
    + 2 values, where direct encoding (GRR) stops being the most accurate, it is moved exactly twice as far as OUE.

    Example:
        >>> warns(74.9, beside=3.2), warns(21.0, beside=21.0), warns(6.3, beside=3.1)
        (True, False, False)
    """
    return weight > _MANY and weight > _TWICE * beside


def part_text(part: float) -> str:
    """A part of all reports as people write it.

    Example:
        >>> part_text(0.01), part_text(0.001), part_text(1 / 3)
        ('1%', '0.1%', '33.3%')
    """
    return f"{100 * part:.3g}%"
