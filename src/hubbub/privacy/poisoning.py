"""When a plan warns of forged reports, and how it names their part of all reports."""

from __future__ import annotations

FORGED = 0.01
"""The part of all reports that is assumed to be forged, unless another is given."""

_MANY = 10
_TWICE = 2


def warns(weight: float, beside: float) -> bool:
    """Whether a mechanism deserves a warning: a forged report counts for more than ten people, and for more than
    needed.

    More than needed is more than twice what a forged report counts for under the mechanism to compare with (`beside`).
    At d = 3 e^eps + 2 values, where direct encoding (GRR) stops being the most accurate, forged reports move it exactly
    twice as far as OUE.
    """
    return weight > _MANY and weight > _TWICE * beside


def part_text(part: float) -> str:
    """A part of all reports in percent."""
    return f"{100 * part:.3g}%"
