"""How far one forged report of a square wave can move an answer that is linear in the shares of the points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def forged_range(target: Floats, *, cells: int, band: int, near: float, far: float) -> tuple[float, float]:
    """The least and the largest number that a report can stand for in the sum of target t times share, over all truths.

    A report of cell j has the weight y_j, and M'y = t: an estimate without bias. So the cells of a class, j modulo the
    band, differ by the steps of t over gain = near - far, summed: u_j. A class is as likely whatever is held, and least
    squares take its expected u from each: y_j = t s - E(u of j's class) + u_j, where the weights come from the shares
    s. This is linear in s. Its extremes are where all hold one point i: a class then has E(u) = (gain u of the cell in
    i's band + far (sum of u)) / (gain + far (its cells)).
    """
    gain, points = near - far, cells + 1
    steps = np.diff(target) / gain
    place = np.arange(cells + band)
    level = np.zeros(cells + band)
    for first in range(0, cells, band):  # cell j + band is one step of t, that from point j to j + 1, above cell j
        count = min(band, cells - first)
        level[first + band : first + band + count] = level[first : first + count] + steps[first : first + count]
    kind = place % band
    total, size = np.bincount(kind, level), np.bincount(kind)
    lowest, highest = np.full(band, np.inf), np.full(band, -np.inf)
    np.minimum.at(lowest, kind, level)
    np.maximum.at(highest, kind, level)
    inside = np.lib.stride_tricks.sliding_window_view(level, band)[:points]  # each class once, from class i mod band on
    classes = (np.arange(points)[:, None] + np.arange(band)[None, :]) % band
    expected = (gain * inside + far * total[classes]) / (gain + far * size[classes])
    rest = target[:, None] - expected
    return float((rest + lowest[classes]).min()), float((rest + highest[classes]).max())


def part_below(border: int, half: int, points: int) -> Floats:
    """How much of each point counts for the share below a border, blurred over so many borders on either side."""
    borders = np.arange(border - half, border + half + 1)
    return np.asarray((borders[None, :] > np.arange(points)[:, None]).mean(axis=1))
