"""The one method that all queries of a store use, and which each database implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from hubbub.service.store.base import AskRow

CHUNK = 256
"""How many rows a query that may have many returns at once."""

ASK_COLUMNS = (
    "asks.collection, asks.ask, question, first, step, round, part, spec, opens, closes, final, forgotten, data"
)


class SqlReader(ABC):
    """A database that answers queries on a connection for reading."""

    @abstractmethod
    def _read(self, sql: str, *values: object) -> list[Any]:
        """Run one statement on the reading connection."""


def ask_row(columns: Sequence[Any]) -> AskRow:
    """The row of the columns `ASK_COLUMNS`, in the types of `AskRow`."""
    row = AskRow(*columns)
    return row._replace(final=bool(row.final), forgotten=bool(row.forgotten), sketch=bytes(row.sketch))
