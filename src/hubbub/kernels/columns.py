"""Column sums of packed bits: how many rows have each bit set, or their total weight."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.kernels.compile import kernel
from hubbub.kernels.threads import in_threads, readonly

ROW = 256  # bytes of a row that is long enough
BLOCK = 1 << 15  # rows before the 16-bit counters are emptied
SLICE = 1 << 24  # bytes, some 5 ms: less is not worth a thread


def column_sums(packed: NDArray[Any], weights: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Sum each bit over the rows; bit b of byte c is column 8 c + b."""
    packed = readonly(packed, np.uint8)
    together = ROW // max(1, packed.shape[1]) if weights is None else 1
    if together > 1 and len(packed) >= together:
        # Short rows are counted several as one, so that the inner loop is long enough to vectorise.
        whole = len(packed) // together * together
        long = column_sums(packed[:whole].reshape(whole // together, -1))
        return np.asarray(long.reshape(together, -1).sum(axis=0) + column_sums(packed[whole:]))
    weighing = None if weights is None else readonly(weights, np.int64)

    def count(start: int, stop: int) -> NDArray[np.int64]:
        sums = np.zeros((8, packed.shape[1]), dtype=np.int64)
        if weighing is None:
            _count(packed[start:stop], sums)
        else:
            _weigh(packed[start:stop], weighing[start:stop], sums)
        return sums

    sums = in_threads(count, len(packed), max(1, SLICE // max(1, packed.shape[1])))
    return np.ascontiguousarray(sums.T).reshape(-1)


@kernel
def _count(packed, sums):
    n, width = packed.shape
    planes = np.zeros((8, width), dtype=np.uint16)  # one plane a bit: the inner loop vectorises over bytes
    for start in range(0, n, BLOCK):
        for row in range(start, min(start + BLOCK, n)):
            for bit in range(8):
                for c in range(width):
                    planes[bit, c] += np.uint16((packed[row, c] >> np.uint8(bit)) & np.uint8(1))
        for bit in range(8):
            for c in range(width):
                sums[bit, c] += np.int64(planes[bit, c])
                planes[bit, c] = 0


@kernel
def _weigh(packed, weights, sums):
    n, width = packed.shape
    for row in range(n):
        weight = weights[row]
        for bit in range(8):
            for c in range(width):
                sums[bit, c] += weight * np.int64((packed[row, c] >> np.uint8(bit)) & np.uint8(1))
