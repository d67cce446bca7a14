"""Confidence levels, and how wide normal intervals of a level are."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

from hubbub.core.errors import InvalidValue

MARGIN = 1e-12
"""How near to 0 and 1 a level may be: nearer, floats no longer tell the normal quantile."""


def check_level(level: float) -> float:
    """Refuse a confidence level that is not a probability inside 0 and 1; returns the level."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not MARGIN <= level <= 1 - MARGIN:
        raise InvalidValue("level", level, f"a probability between 0 and 1, at least {MARGIN:g} from both")
    return level


@lru_cache(64)
def normal_reach(level: float) -> float:
    """Half the width of a normal interval of this level, in standard errors. Cached: pages need it for many values."""
    return NormalDist().inv_cdf(0.5 + check_level(level) / 2)
