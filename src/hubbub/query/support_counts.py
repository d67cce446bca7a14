"""Counts, block by block, the weighted support of cells in each stratum, and caches the counts for later queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.cell_sums import Level
from hubbub.protocols.ranges.dimension import Codes, Floats
from hubbub.protocols.ranges.hierarchy import IntervalMechanism, LevelReports
from hubbub.protocols.ranges.measures import Measure
from hubbub.protocols.ranges.supports import MOST_KEPT, Supports
from hubbub.query.monomials import Monomial
from hubbub.query.private_table import PrivateTable
from hubbub.query.strata import BlockRows, Strata
from hubbub.query.time_limit import check_time

Needs = Mapping[int, Mapping[Level, Codes]]
"""For the index of each stratum, the cells of each level that must be counted."""
MOST_HASHES = 1 << 28
"""The query's time is checked each time that so many pairs of a report and a cell were looked at (under a second)."""
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
