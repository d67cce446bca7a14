"""The synthetic processes of LDP-IDS (section 7.1.1): a share at each step of a stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random

Floats = NDArray[np.float64]


def linear_process(steps: int, rng: Random, *, start: float = 0.05, deviation: float = 0.0025) -> Floats:
    """LNS: a random walk, p_t = p_(t-1) + normal noise of the given deviation (sqrt Q), kept within 0 to 1.

    Parameters
    ----------
    steps
        The length of the stream.
    rng
        The source of the noise.
    start, deviation
        p_0, and the standard deviation of a step.
    """
    walk = np.empty(_length(steps))
    p = start
    for t, change in enumerate(deviation * normals(steps, rng)):
        p = min(max(p + change, 0.0), 1.0)
        walk[t] = p
    return walk


def sine_process(steps: int, *, amplitude: float = 0.05, b: float = 0.01, height: float = 0.075) -> Floats:
    """Sin: p_t = amplitude sin(b t) + height."""
    return np.asarray(amplitude * np.sin(b * np.arange(1, _length(steps) + 1)) + height)


def logistic_process(steps: int, *, amplitude: float = 0.25, b: float = 0.01) -> Floats:
    """Log: p_t = amplitude / (1 + e^(-b t))."""
    return np.asarray(amplitude / (1 + np.exp(-b * np.arange(1, _length(steps) + 1))))


def normals(size: int, rng: Random) -> Floats:
    """Standard normal numbers, by Box and Muller."""
    uniform = (rng.uint64(2, (size + 1) // 2).astype(np.float64) + 0.5) / 2.0**64
    radius, angle = np.sqrt(-2 * np.log(uniform[0])), 2 * np.pi * uniform[1]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size]


def _length(steps: int) -> int:
    if steps < 1:
        raise InvalidValue("steps", steps, "at least 1")
    return steps
