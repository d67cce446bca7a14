"""Supports of cells, weighed and by stratum, counted block by block and kept for later queries."""

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
"""For the place of each stratum, the cells of each level that are needed."""
MOST_HASHES = 1 << 28
"""The query's time is checked each time that so many pairs of a report and a cell were looked at (under a second)."""
Wanting = tuple[int, Level, Monomial]
"""The place of a stratum, a level, and a weight: what cells are counted for."""


class SupportCounts:
    """How much of each weight supports a cell, among the people of a stratum who reported on its level.

    What was counted serves later queries; what is new is counted in one pass over the table, a block at a time.

    Parameters
    ----------
    table
        Whose reports are counted.
    mechanism
        How they were made.
    most
        How many cells are kept.

    Example:
        >>> from hubbub.query.example_table import example_table
        >>> from hubbub.query.monomials import EVERYBODY
        >>> table = example_table(epsilon=40.0)
        >>> counts = SupportCounts(table, table.schema.mechanism)
        >>> strata = Strata(table, public=[], keys=[], atoms=[], weights=[EVERYBODY])
        >>> cells = np.arange(3)
        >>> counts.count(strata, {0: {(0, 1): cells}}, [EVERYBODY])
        >>> supports, totals = counts.of(strata, 0, EVERYBODY, (0, 1), cells)
        >>> bool(supports[0].sum() == totals[0] == table.level_sizes()[0, 1]), counts.passes
        (True, 1)
    """

    def __init__(self, table: PrivateTable, mechanism: IntervalMechanism, most: int = MOST_KEPT) -> None:
        self._table = table
        self._mechanism = mechanism
        self.supports = Supports(most)
        self.passes = 0
        """How often the reports were read."""

    def count(self, strata: Strata, needs: Needs, monomials: Sequence[Monomial]) -> None:
        """See to it that `of` knows these cells."""
        missing: dict[Wanting, Codes] = {}
        for place, levels in needs.items():
            for level, cells in levels.items():
                for monomial in monomials:
                    absent = self.supports.missing(self._key(strata, place, monomial, level), cells)
                    if absent.size:
                        missing[place, level, monomial] = absent
        if missing:
            self._pass(strata, missing)

    def _pass(self, strata: Strata, missing: dict[Wanting, Codes]) -> None:
        self.passes += 1
        sums = {wanting: (np.zeros((2, cells.size)), np.zeros(2)) for wanting, cells in missing.items()}
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
        sums: dict[Wanting, tuple[Floats, Floats]],
        missing: dict[Wanting, Codes],
        level: Level,
        group: LevelReports,
        block: BlockRows,
    ) -> None:
        """Add what the reports of a level and a block support."""
        spots = np.minimum(np.searchsorted(block.rows, group.rows), block.rows.size - 1)
        asked = np.flatnonzero(block.rows[spots] == group.rows)
        spots = spots[asked]
        order = np.argsort(block.strata[spots], kind="stable")
        places, starts = np.unique(block.strata[spots][order], return_index=True)
        oracle = self._mechanism.oracle(level)
        for place, own in zip(places.tolist(), np.split(order, starts[1:]), strict=True):
            wanted = [monomial for monomial in block.weights if (place, level, monomial) in missing]
            if not wanted:
                continue
            reports = LevelReports(group.rows[asked[own]], group.reports[asked[own]])
            for monomial in wanted:
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
        return strata.every[place].name, monomial, level


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
