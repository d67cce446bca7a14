"""PAK's threshold: a percentile with noise by smooth sensitivity (S-P, Nissim et al.), which PAK raises (S-PAK).

It uses floats and is (epsilon, delta)-private: a baseline for the paper's comparisons alone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.random.source import Random

PERCENTILE = 99.5
_RAISED = 99.575
_BETA = 0.3 * 0.02


def smooth_sensitivity(values: NDArray[np.float64], bound: float, rank: int, decay: float) -> float:
    """max over k of e^(-b k) max over t of V(P+t) - V(P+t-k-1) (appendix B), for values in order."""
    m = values.size
    best = 0.0
    for k in range(m + 2):
        weight = math.exp(-decay * k)
        if weight * bound <= best:
            break  # no later k can be larger
        top = np.arange(rank, rank + k + 2)
        best = max(best, weight * float((_at(values, bound, top) - _at(values, bound, top - k - 1)).max()))
    return best


def _at(values: NDArray[np.float64], bound: float, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    inside = values[np.clip(ranks - 1, 0, values.size - 1)]
    return np.where(ranks < 1, 0.0, np.where(ranks > values.size, bound, inside))


def threshold_s_p(values: NDArray[np.float64], bound: float, epsilon: float, rng: Random) -> float:
    """The noisy percentile: unbiased, and often far above the bound or below 0 (then the smallest positive number)."""
    quantile, spread, _ = _percentile(values, bound, epsilon, PERCENTILE)
    return max(quantile + spread * _laplace(rng), 1e-9)


def threshold_s_pak(values: NDArray[np.float64], bound: float, epsilon: float, rng: Random) -> float:
    """The noisy percentile, raised so that it is unlikely to be too small."""
    quantile, spread, decay = _percentile(values, bound, epsilon, _RAISED)
    reach = -math.log(2 * _BETA)
    raised = 1 / (1 - math.expm1(decay) * reach / (epsilon / 2))
    return max(quantile + raised * spread * (_laplace(rng) + reach), 1e-9)


def _percentile(
    values: NDArray[np.float64], bound: float, epsilon: float, percentile: float
) -> tuple[float, float, float]:
    """The percentile, its smooth sensitivity over a = epsilon/2, and the smoothing b; delta = 1/n^2."""
    ordered = np.sort(values)
    rank = math.ceil(percentile / 100 * ordered.size)
    decay = epsilon / (4 * math.log(ordered.size))
    return float(ordered[rank - 1]), smooth_sensitivity(ordered, bound, rank, decay) / (epsilon / 2), decay


def _laplace(rng: Random) -> float:
    """A standard Laplace variate."""
    uniform = (int(rng.uint64(1)[0]) + 0.5) / 2**64
    return math.copysign(math.log1p(-abs(2 * uniform - 1)), 0.5 - uniform)
