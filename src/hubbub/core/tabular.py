"""Results that are tables, as data frames of any library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import needs

if TYPE_CHECKING:
    import pyarrow


class Tabular(ABC):
    """A result with one Arrow table. Everything that reads the Arrow PyCapsule interface takes the result itself."""

    @abstractmethod
    def to_arrow(self) -> pyarrow.Table:
        """The result as an Arrow table."""

    def to_pandas(self) -> Any:
        """A data frame of pandas."""
        table = self.to_arrow()
        with needs(""):  # no extra brings pandas
            return table.to_pandas()

    def to_polars(self) -> Any:
        """A data frame of polars."""
        with needs(""):  # no extra brings polars
            polars = import_module("polars")
        return polars.from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream, for `polars.DataFrame(result)`, `pandas`, DuckDB and others."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]
