"""What the engine needs of a table, wherever its reports are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hubbub.protocols.ranges.hierarchy import LevelReports
from hubbub.query.schema import ROW, TableSchema

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Level = tuple[int, ...]
"""What a report is on: a level of each dimension (HIO, HI, MG), a column and its level (SC), or a grid (HDG)."""
BLOCK = 1 << 18
"""So many people are looked at together: what is in memory at a time does not grow with their number."""


class PrivateTable(ABC):
    """Public columns, and the reports of people on private ones, in blocks of neighbouring rows.

    People are the rows 0 to n-1. A subclass says where public columns and reports are; `QueryEngine` answers queries
    over any of them.
    """

    schema: TableSchema

    @property
    @abstractmethod
    def n(self) -> int:
        """How many people there are."""

    @abstractmethod
    def connection(self) -> DuckDBPyConnection:
        """A connection that the engine alone uses, locked by `sandbox.lock`.

        In it, the view or table `relation` has the public columns and the number of each row (`ROW`).
        """

    @abstractmethod
    def level_sizes(self) -> Mapping[Level, int]:
        """How many reports there are on each level; levels without any may be left out."""

    @abstractmethod
    def reports(self, level: Level, rows: range) -> LevelReports | None:
        """The reports on a level by people of a block, their rows counted from the table's first, in rising order."""

    @property
    def relation(self) -> str:
        """What the public columns stand in, as SQL."""
        return "people"

    def blocks(self) -> Sequence[range]:
        """The rows of each block."""
        return [range(start, min(start + BLOCK, self.n)) for start in range(0, self.n, BLOCK)]


def rows_within(group: LevelReports, rows: range) -> LevelReports | None:
    """Those of some reports that are by people of a block; their rows must rise.

    Example:
        >>> from hubbub.core.reports import Reports
        >>> group = LevelReports(np.array([2, 5, 9]), Reports("0" * 32, private={"value": np.uint8([1, 0, 1])}))
        >>> rows_within(group, range(4, 9)).rows.tolist()
        [5]
    """
    first, last = np.searchsorted(group.rows, [rows.start, rows.stop])
    if first == last:
        return None
    return LevelReports(group.rows[first:last], group.reports[slice(first, last)])


__all__ = ["BLOCK", "ROW", "Level", "PrivateTable", "rows_within"]
