"""The interface between the query engine and a table, wherever its reports are stored."""

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
"""The subject of a report: a level of each dimension (HIO, HI, MG), a column and its level (SC), or a grid (HDG)."""
BLOCK = 1 << 18
"""The number of people in a block. One block is in memory at a time."""


class PrivateTable(ABC):
    """Public columns, and the reports of people on private ones, in blocks of neighbouring rows.

    People are the rows 0 to n-1. A subclass reads public columns and reports from where they are stored.
    """

    schema: TableSchema

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of people."""

    @abstractmethod
    def connection(self) -> DuckDBPyConnection:
        """A connection that the engine alone uses, locked by `sandbox.lock`.

        In it, the view or table `relation` has the public columns and the number of each row (`ROW`).
        """

    @abstractmethod
    def level_sizes(self) -> Mapping[Level, int]:
        """The number of reports on each level; levels without reports may be left out."""

    @abstractmethod
    def reports(self, level: Level, rows: range) -> LevelReports | None:
        """The reports on a level by people of a block, in rising order of their rows; rows are those of the table."""

    @property
    def relation(self) -> str:
        """The name of the relation with the public columns, as SQL."""
        return "people"

    def blocks(self) -> Sequence[range]:
        """The rows of each block."""
        return [range(start, min(start + BLOCK, self.n)) for start in range(0, self.n, BLOCK)]


def rows_within(group: LevelReports, rows: range) -> LevelReports | None:
    """The reports by people of a block, of reports whose rows rise."""
    first, last = np.searchsorted(group.rows, [rows.start, rows.stop])
    if first == last:
        return None
    return LevelReports(group.rows[first:last], group.reports[slice(first, last)])


__all__ = ["BLOCK", "ROW", "Level", "PrivateTable", "rows_within"]
