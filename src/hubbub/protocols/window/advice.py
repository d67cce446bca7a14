"""Which method to pick: what was measured of each beside LPU, on streams that nothing was chosen on."""

from __future__ import annotations

from hubbub.core.errors import InvalidValue

__all__ = ["PICKED", "advice"]

PICKED = "LPU"
"""The least error on most streams that move, the narrowest interval that is there in every step, one ask a step."""
_SILENT = "no interval in a step that asks nobody"
_BESIDE = {
    "uniform": "an interval in every step, and the least error on most streams",
    "sampling": f"{_SILENT}; {PICKED} has one in every step, and follows what changes between",
    "distribution": f"{PICKED} errs less where a stream keeps moving, and its intervals are a quarter narrower",
    "absorption": f"{PICKED} errs less on most streams, and its intervals are a quarter narrower",
    "dsat": f"{PICKED} errs less on most streams, and its intervals are a quarter narrower",
    "rescue": f"{_SILENT}; {PICKED} has one in every step, and errs less",
    "fast": f"{_SILENT}; {PICKED} has one in every step, and errs less where a stream moves",
    "pegasus": f"{PICKED} errs less on most streams",
}


def advice(method: str) -> str:
    """How a method compares with the one to pick.

    Example:
        >>> advice("LPU"), advice("LBA")
        ('an interval in every step, and the least error on most streams', 'LPU, of the population, errs far less')
    """
    from hubbub.protocols.window import METHODS, BudgetDivision

    if method not in METHODS:
        raise InvalidValue("method", method, f"one of {', '.join(METHODS)}")
    chosen = METHODS[method]
    if chosen.division is BudgetDivision:
        return f"{PICKED}, of the population, errs far less"
    return _BESIDE[chosen.decide.__name__]
