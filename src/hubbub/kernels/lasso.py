"""Non-negative LASSO by coordinate descent, on a design whose columns have few non-zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.kernels.compile import kernel


def nonnegative_lasso(
    rows: NDArray[Any],
    scale: NDArray[np.float64],
    target: NDArray[np.float64],
    penalty: NDArray[np.float64],
    *,
    sweeps: int = 2000,
    tolerance: float = 1e-7,
) -> NDArray[np.float64]:
    """Minimise |target - X b|^2 / 2 + penalty . b over b >= 0.

    Column c of X holds `scale[r]` at each row r of `rows[c]`; a row of -1 stands for none.
    """
    solution = np.zeros(len(rows))
    residual = np.array(target, dtype=np.float64)
    _descend(np.ascontiguousarray(rows, dtype=np.int64), scale, residual, penalty, sweeps, tolerance, solution)
    return solution


@kernel
def _descend(rows, scale, residual, penalty, sweeps, tolerance, solution):
    count, depth = rows.shape
    norms = np.zeros(count)
    for c in range(count):
        for k in range(depth):
            if rows[c, k] >= 0:
                norms[c] += scale[rows[c, k]] ** 2
    for _ in range(sweeps):
        largest = 0.0
        for c in range(count):
            if norms[c] == 0.0:
                continue
            slope = 0.0
            for k in range(depth):
                if rows[c, k] >= 0:
                    slope += scale[rows[c, k]] * residual[rows[c, k]]
            change = max(0.0, solution[c] + (slope - penalty[c]) / norms[c]) - solution[c]
            if change != 0.0:
                solution[c] += change
                for k in range(depth):
                    if rows[c, k] >= 0:
                        residual[rows[c, k]] -= change * scale[rows[c, k]]
                largest = max(largest, abs(change) * np.sqrt(norms[c]))
        if largest < tolerance:
            break
