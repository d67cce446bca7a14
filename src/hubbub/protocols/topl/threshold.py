"""The threshold of least expected error (Eq 8 of tops-topl, corrected), and the paper's two ways to find it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.numeric.hybrid import Hybrid
from hubbub.mechanisms.numeric.square_wave import SquareWave

Floats = NDArray[np.float64]
FINDERS = ("SW", "SW-W")
"""The paper's estimates of the distribution: with smoothing, or without smoothing and pruned."""
LEAST, CONSECUTIVE = 1e-4, 5


def range_errors(shares: Floats, points: Floats, thetas: Floats, *, epsilon: float, r: int) -> Floats:
    """The mean squared error of a sum over a random range of at most r values, for each threshold.

    Eq 8: the variance of one report times the mean length (r+2)/3, plus the squared bias of clipping times the mean
    squared length (r+1)(r+2)/6, where the paper prints r^2/24.
    """
    variance = Hybrid(epsilon=epsilon, low=0.0, high=1.0).variance(1)  # the same for any value, above epsilon 0.61
    noise = (r + 2) / 3 * variance * thetas**2
    above = np.maximum(points[None, :] - thetas[:, None], 0.0) @ shares
    return np.asarray(noise + (r + 1) * (r + 2) / 6 * above**2)


def pruned(shares: Floats) -> Floats:
    """The shares, set to 0 from the first of five consecutive points on that are all below 0.01% (section 4.1)."""
    small: NDArray[np.bool_] = np.concatenate([shares < LEAST, np.ones(CONSECUTIVE, dtype=bool)])
    windows = np.lib.stride_tricks.sliding_window_view(small, CONSECUTIVE)
    runs = np.asarray(np.all(windows, axis=1))[1:]
    # The first points may be rare too: at least one point that is not rare must remain.
    begun = np.cumsum(shares >= LEAST) > 0
    ends = np.flatnonzero(runs & begun)
    remaining = shares.copy()
    if len(ends):
        remaining[ends[0] + 1 :] = 0.0
    return remaining


def distribution_of(wave: SquareWave, sketch: Sketch, finder: str = "SW-W") -> Floats:
    """The shares of the wave's points as a finder estimates them: "SW" by EMS, "SW-W" by EM and pruned."""
    if finder not in FINDERS:
        raise InvalidValue("finder", finder, f"one of {', '.join(FINDERS)}")
    shares = wave.likeliest(sketch, smooth=finder == "SW")
    return shares if finder == "SW" else pruned(shares)


def best_theta(wave: SquareWave, sketch: Sketch, *, epsilon: float, r: int, finder: str = "SW-W") -> float:
    """The threshold of least expected error among the points of the wave.

    Parameters
    ----------
    wave, sketch
        The mechanism of the search, and the sketch of its reports.
    epsilon
        What one report of a clipped value will spend.
    r
        The most values that a range has.
    finder
        One of `FINDERS`.
    """
    points = wave.points[1:]
    shares = distribution_of(wave, sketch, finder)
    errors = range_errors(shares, wave.points, points, epsilon=epsilon, r=r)
    return float(points[int(np.argmin(errors))])
