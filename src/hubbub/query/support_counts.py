"""Counts the weighted support of cells in each stratum, block by block, and sums them with their exact covariances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.cell_sums import Level
from hubbub.protocols.ranges.dimension import Codes, Floats
from hubbub.protocols.ranges.hierarchy import IntervalMechanism, LevelReports
from hubbub.protocols.ranges.table import MOST_KEPT, Measure, Supports
from hubbub.query.sandbox import check_time
from hubbub.query.schema import PrivateTable
from hubbub.query.strata import BlockRows, Strata
from hubbub.query.sums import JointEstimate, Monomial

Needs = Mapping[int, Mapping[Level, Codes]]
"""For the index of each stratum, the cells of each level that must be counted."""
MOST_HASHES = 1 << 28
"""The query's time is checked whenever this number of pairs of a report and a cell was looked at (under a second)."""
CountKey = tuple[int, Level, Monomial]
"""The index of a stratum, a level, and a weight."""


class SupportCounts:
    """The total weight of the reports that support a cell, among the people of a stratum who reported on its level.

    Counts are cached. Those that are missing for a query are made in one pass over the table, a block at a time.

    Parameters
    ----------
    table
        The table with the reports.
    mechanism
        The mechanism that made them.
    most
        For how many cells counts are cached.
    """

    def __init__(self, table: PrivateTable, mechanism: IntervalMechanism, most: int = MOST_KEPT) -> None:
        self._table = table
        self._mechanism = mechanism
        self.supports = Supports(most)
        self.passes = 0
        """How many times the reports were read."""

    def count(self, strata: Strata, needs: Needs, monomials: Sequence[Monomial]) -> None:
        """Count the cells that are not cached yet, so that `of` can be asked for them."""
        missing: dict[CountKey, Codes] = {}
        for place, levels in needs.items():
            for level, cells in levels.items():
                for monomial in monomials:
                    absent = self.supports.missing(self._key(strata, place, monomial, level), cells)
                    if absent.size:
                        missing[place, level, monomial] = absent
        if missing:
            self._pass(strata, missing)

    def _pass(self, strata: Strata, missing: dict[CountKey, Codes]) -> None:
        self.passes += 1
        sums = {key: (np.zeros((2, cells.size)), np.zeros(2)) for key, cells in missing.items()}
        levels = sorted({level for _, level, _ in missing})
        for rows, block in strata.blocks(sorted({monomial for _, _, monomial in missing})):
            for level in levels:
                group = self._table.reports(level, rows)
                if group is not None and block.rows.size:
                    self._add(sums, missing, level, group, block)
        for (place, level, monomial), (counts, totals) in sums.items():
            cells = missing[place, level, monomial]
            self.supports.keep(self._key(strata, place, monomial, level), cells, counts, totals)

    def _add(
        self,
        sums: dict[CountKey, tuple[Floats, Floats]],
        missing: dict[CountKey, Codes],
        level: Level,
        group: LevelReports,
        block: BlockRows,
    ) -> None:
        """Add the supports from the reports of a level and a block."""
        spots = np.minimum(np.searchsorted(block.rows, group.rows), block.rows.size - 1)
        selected = np.flatnonzero(block.rows[spots] == group.rows)
        if not selected.size:
            return
        spots = spots[selected]
        order = np.argsort(block.strata[spots], kind="stable")
        places, starts = np.unique(block.strata[spots][order], return_index=True)
        oracle = self._mechanism.oracle(level)
        for place, own in zip(places.tolist(), np.split(order, starts[1:]), strict=True):
            monomials = [monomial for monomial in block.weights if (place, level, monomial) in missing]
            if not monomials:
                continue
            reports = LevelReports(group.rows[selected[own]], group.reports[selected[own]])
            for monomial in monomials:
                cells = missing[place, level, monomial]
                weights = block.weights[monomial][spots[own]] if monomial.base else None
                counts, totals = sums[place, level, monomial]
                some = max(MOST_HASHES // own.size, 1)
                for start in range(0, cells.size, some):
                    check_time()
                    chunk = slice(start, start + some)
                    more, whole = _supports(oracle, reports, cells[chunk], weights)
                    counts[:, chunk] += more
                totals += whole

    def of(self, strata: Strata, place: int, monomial: Monomial, level: Level, cells: Codes) -> tuple[Floats, Floats]:
        """The support of each cell by a weight and by its square, and the totals of those who reported."""
        return self.supports.find(self._key(strata, place, monomial, level), cells)

    @staticmethod
    def _key(strata: Strata, place: int, monomial: Monomial, level: Level) -> object:
        return strata.strata[place].name, monomial, level


def _supports(
    oracle: FrequencyOracle, group: LevelReports, cells: Codes, weights: Floats | None
) -> tuple[Floats, Floats]:
    if weights is None:
        counts = oracle.supports(group.reports, cells.astype(np.uint64)).astype(np.float64)
        return np.array([counts, counts]), np.full(2, float(group.rows.size))
    measure = Measure.of("measure", weights)
    sums = oracle.support(group.reports, cells, measure.weights).counts
    scales = np.array([measure.scale, measure.scale**2])
    return sums[:, :-1] / scales[:, None], sums[:, -1] / scales


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
