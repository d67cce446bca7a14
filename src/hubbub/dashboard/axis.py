"""Where the lines of a chart are."""

from __future__ import annotations

import math


def ticks(low: float, high: float, *, about: int = 4) -> list[float]:
    """Round numbers, evenly apart, the first at most `low` and the last at least `high`."""
    if not high > low:
        high = low + 1.0
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * k, 12) for k in range(first, last + 1)]
