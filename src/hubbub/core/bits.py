"""Rows of bits, eight to a byte, the first bit lowest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def pack(bits: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Pack each row."""
    return np.packbits(bits, axis=1, bitorder="little")


def unpack(packed: NDArray[Any], size: int) -> NDArray[np.uint8]:
    """The first `size` bits of each row."""
    return np.unpackbits(packed, axis=1, count=size, bitorder="little")


def every_row(size: int) -> NDArray[np.uint8]:
    """All 2^size rows of so many bits, packed."""
    return pack((np.arange(1 << size)[:, None] >> np.arange(size) & 1).astype(bool))
