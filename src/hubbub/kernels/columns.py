"""Column sums of packed bits: how many rows have each bit set, or their total weight."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.kernels.compile import kernel, parallel_kernel, prange, tasks_for

__all__ = ["column_sums"]

BLOCK = 1 << 15  # rows before the 16-bit counters are emptied


def column_sums(packed: NDArray[Any], weights: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Sum each bit over the rows; bit b of byte c is column 8 c + b.

    Example:
        >>> import numpy as np
        >>> column_sums(np.array([[5], [4]], dtype=np.uint8))[:4].tolist()
        [1, 0, 2, 0]
        >>> column_sums(np.array([[5], [4]], dtype=np.uint8), np.array([10, 1]))[:4].tolist()
        [10, 0, 11, 0]
    """
    packed = np.ascontiguousarray(packed)
    sums = np.zeros((8, packed.shape[1]), dtype=np.int64)
    if weights is None:
        _count(packed, tasks_for(len(packed), 1024), sums)
    else:
        _weigh(packed, np.ascontiguousarray(weights, dtype=np.int64), sums)
    return np.ascontiguousarray(sums.T).reshape(-1)


@parallel_kernel
def _count(packed, tasks, sums):
    n, width = packed.shape
    partial = np.zeros((tasks, 8, width), dtype=np.int64)
    for task in prange(tasks):
        planes = np.zeros((8, width), dtype=np.uint16)  # one plane a bit: the inner loop vectorises over bytes
        end = (task + 1) * n // tasks
        for start in range(task * n // tasks, end, BLOCK):
            for row in range(start, min(start + BLOCK, end)):
                for bit in range(8):
                    for c in range(width):
                        planes[bit, c] += np.uint16((packed[row, c] >> np.uint8(bit)) & np.uint8(1))
            for bit in range(8):
                for c in range(width):
                    partial[task, bit, c] += np.int64(planes[bit, c])
                    planes[bit, c] = 0
    for task in range(tasks):
        sums += partial[task]


@kernel
def _weigh(packed, weights, sums):
    n, width = packed.shape
    for row in range(n):
        weight = weights[row]
        for bit in range(8):
            for c in range(width):
                sums[bit, c] += weight * np.int64((packed[row, c] >> np.uint8(bit)) & np.uint8(1))
