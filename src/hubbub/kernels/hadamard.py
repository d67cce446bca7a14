"""The fast Walsh-Hadamard transform."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.kernels.compile import kernel

Number = TypeVar("Number", np.int64, np.float64)


def walsh_hadamard(x: NDArray[Number]) -> NDArray[Number]:
    """The sums over r of x[r] (-1)^popcount(r & v), for every v; the length is a power of two."""
    out = x.copy()
    _transform(out)
    return out


@kernel
def _transform(x):
    size = x.size
    step = 1
    while step * 4 <= size:  # two levels a pass: half the trips through memory
        for start in range(0, size, 4 * step):
            a, b = x[start : start + step], x[start + step : start + 2 * step]
            c, d = x[start + 2 * step : start + 3 * step], x[start + 3 * step : start + 4 * step]
            for i in range(step):
                s, t, u, v = a[i] + b[i], a[i] - b[i], c[i] + d[i], c[i] - d[i]
                a[i], b[i], c[i], d[i] = s + u, t + v, s - u, t - v
        step *= 4
    if step < size:
        for i in range(step):
            s, t = x[i] + x[i + step], x[i] - x[i + step]
            x[i], x[i + step] = s, t
