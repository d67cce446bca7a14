"""Products with a Toeplitz matrix whose entries are sums of a few powers, in memory of one number for each power.

The weights are l_0 = 1 and l_k = sum_j weight_j rate_j^k. `multiply` gives (l * w)_t, `divide` solves (l * q)_t = s_t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.kernels.compile import kernel

Floats = NDArray[np.float64]


def divide(sums: Floats, weights: Floats, rates: Floats, memory: Floats) -> Floats:
    """q with q_t + sum_j weight_j rate_j memory_j = s_t; the memory, sums of q by powers, is changed in place."""
    out = np.empty(sums.size)
    _divide(sums, weights, rates, memory, out)
    return out


def multiply(numbers: Floats, weights: Floats, rates: Floats, memory: Floats) -> Floats:
    """w_t + sum_j weight_j rate_j memory_j; the memory, sums of w by powers, is changed in place."""
    out = np.empty(numbers.size)
    _multiply(numbers, weights, rates, memory, out)
    return out


@kernel
def _divide(sums, weights, rates, memory, out):
    for t in range(sums.size):
        before = 0.0
        for j in range(rates.size):
            memory[j] *= rates[j]
            before += weights[j] * memory[j]
        number = sums[t] - before
        out[t] = number
        for j in range(rates.size):
            memory[j] += number


@kernel
def _multiply(numbers, weights, rates, memory, out):
    for t in range(numbers.size):
        total = numbers[t]
        for j in range(rates.size):
            memory[j] *= rates[j]
            total += weights[j] * memory[j]
            memory[j] += numbers[t]
        out[t] = total
