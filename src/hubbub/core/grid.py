"""Unbiased rounding of numbers to a grid, in integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue

GRAIN = 1 << 32
"""A number between two grid points is first fixed to a 2^-32 part of a cell."""


def to_units(values: Any, low: float, high: float, cells: int) -> NDArray[np.int64]:
    """Numbers from low to high as integers from 0 to cells 2^32, to the nearest."""
    numbers = np.atleast_1d(np.asarray(values))
    if numbers.size == 0:
        return np.empty(0, dtype=np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
        raise InvalidValue("values", values, "a one-dimensional batch of numbers")
    inside = (numbers >= low) & (numbers <= high)
    if not inside.all():
        raise InvalidValue("values", numbers[~inside][0].item(), f"numbers from {low:g} to {high:g}")
    top = cells * GRAIN
    return np.clip(np.rint((numbers - low) / (high - low) * top), 0, top).astype(np.int64)


def to_grid(units: NDArray[np.int64], draws: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Round each up or down to a grid point by 32 random bits, so that its mean is kept exactly."""
    return (units >> 32) + (draws < (units & (GRAIN - 1)))
