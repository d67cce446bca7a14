"""Sums over people in boxes, from reports of intervals (HIO, HI, MG), with their exact covariances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.protocols.ranges.cell_sums import Level
from hubbub.query.joint import JointEstimate
from hubbub.query.monomials import Floats


@dataclass(frozen=True, eq=False)
class LevelSums:
    """The contribution of a level to the sums of a stratum.

    With c the weight of each cell, and w_j what people are weighed with: the sums over people of c w_j, of c w_j w_k
    and of c^2 w_j w_k, all estimated; and A, B, C of the variance A + B c + C c^2 of one report (`report_variance`).
    """

    scale: float
    noise: tuple[float, float, float]
    own: Floats
    first: Floats
    second: Floats


@dataclass(frozen=True, eq=False)
class StratumSums:
    """The sums of a stratum by level, and its exact totals and products; each sum includes `known` times its total.

    `step` is what one report of a person of weight 1 typically adds (`typical_step`).
    """

    step: float
    known: float
    totals: Floats
    products: Floats
    levels: dict[Level, LevelSums]


def joint_intervals(n: int, divided: bool, parts: Sequence[tuple[StratumSums, Floats]]) -> JointEstimate:
    """Sums over the people of several strata, each person being of one of them.

    `SumVariance` has the derivation; here a product of two weights stands for a squared one, and people of different
    strata have different weights of cells. The noise of different people is independent. Dividing n people into levels
    moves all strata together, so that the squares of the levels' sums are of all strata.

    Parameters
    ----------
    n
        How many people the table has.
    divided
        Whether a person reports on one level only.
    parts
        The sums of each stratum, and the matrix that makes the wanted sums (rows) of its weights (columns).
    """
    size = parts[0][1].shape[0] if parts else 0
    value, noise, sampling = np.zeros(size), np.zeros((size, size)), np.zeros((size, size))
    size_of_terms = np.zeros(size)
    level_sums: dict[Level, Floats] = {}
    scales: dict[Level, float] = {}
    for part, matrix in parts:
        value += matrix @ (part.known * part.totals)
        size_of_terms += np.abs(matrix) @ np.abs(part.known * part.totals)
        within = np.zeros_like(part.products)
        for level, sums in part.levels.items():
            value += matrix @ sums.own
            size_of_terms += np.abs(matrix) @ np.abs(sums.own)
            constant, slope, curve = sums.noise
            spent = constant * part.products + slope * sums.first + curve * sums.second
            noise += sums.scale * (matrix @ spent @ matrix.T)
            sampling += sums.scale * (matrix @ sums.second @ matrix.T)
            level_sums[level] = level_sums.get(level, 0.0) + matrix @ sums.own
            scales[level] = sums.scale
            within += sums.first
        own = (1 - 2 * part.known) * within + part.known * (1 - part.known) * part.products
        sampling -= matrix @ own @ matrix.T
    value[np.abs(value) < 1e-12 * size_of_terms] = 0.0  # terms that cancel leave what floats round
    if not divided or n < 2:
        return JointEstimate(value, (noise,))
    every = np.zeros(size)
    for level, own in level_sums.items():
        every += own
        if np.isfinite(scales[level]):
            sampling -= scales[level] * np.outer(own, own) / n
    sampling = (sampling + np.outer(every, every) / n) * n / (n - 1)
    return JointEstimate(value, (noise, sampling))


def typical_step(levels: Sequence[tuple[float, int, Floats]]) -> float:
    """What one report typically adds to a sum: the third moment of what reports add over the second.

    People are taken to be spread evenly. Cells with positive weights, which are those inside of a box, and cells with
    negative weights are looked at separately, and the larger result counts.

    Parameters
    ----------
    levels
        For each level: how many people one report stands for, how many cells the level has, and what a report adds that
        supports each cell of a query.
    """
    moments = np.zeros((2, 2))
    for scale, cells, added in levels:
        sides = np.maximum([added, -added], 0.0)
        moments += np.array([scale * (sides**2).sum(axis=1), scale**2 * (sides**3).sum(axis=1)]) / cells
    return float(max((cube / square for square, cube in moments.T if square > 0), default=0.0))
