"""The answer of a query: a table in which every estimate has an interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import InvalidValue, needs
from hubbub.query.outputs import AnswerInterval

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes
    from rich.table import Table


@dataclass(frozen=True)
class AnswerColumn:
    """A column of an answer: a key of groups, or an estimate and how its interval is made."""

    name: str
    estimate: bool
    how: str = ""


@dataclass(frozen=True, eq=False)
class QueryAnswer:
    """A relation: keys of groups, and for each aggregate a value with its interval.

    Parameters
    ----------
    columns
        Keys and estimates, in the order of SELECT.
    rows
        For each group the keys, and an `AnswerInterval` for each estimate.
    level
        The confidence level of each interval by itself.
    n
        How many people the table has.
    bias
        "none", or "heuristic" where answers rest on assumptions that intervals do not cover.
    notes
        Remarks on how the query was read and answered.
    plan
        How it was answered, as EXPLAIN says it; EXPLAIN alone has no rows.
    """

    columns: tuple[AnswerColumn, ...]
    rows: tuple[tuple[Any, ...], ...]
    level: float
    n: int
    bias: str = "none"
    notes: tuple[str, ...] = ()
    plan: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[Any]:
        """The keys, or the intervals, of a column."""
        names = [column.name for column in self.columns]
        if name not in names:
            raise InvalidValue("column", name, f"one of {', '.join(names)}")
        return [row[names.index(name)] for row in self.rows]

    def value(self) -> AnswerInterval:
        """The one estimate of an answer of one row and one estimate."""
        estimates = [cell for row in self.rows for cell in row if isinstance(cell, AnswerInterval)]
        if len(estimates) != 1:
            raise InvalidValue("answer", len(estimates), "one estimate")
        return estimates[0]

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table: each estimate is three columns, its name, and that with _low and _high."""
        with needs("sql"):
            import pyarrow as pa
        arrays: dict[str, Any] = {}
        for place, column in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            if not column.estimate:
                arrays[column.name] = pa.array(cells)
                continue
            for suffix, end in (("", "value"), ("_low", "low"), ("_high", "high")):
                numbers = [getattr(cell, end) for cell in cells]
                plain = [None if math.isnan(number) else float(number) for number in numbers]
                arrays[f"{column.name}{suffix}"] = pa.array(plain, type=pa.float64())
        return pa.table(arrays)

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

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON; `from_json` reads it back."""
        from hubbub.query.answer_json import answer_to_json

        return answer_to_json(self)

    @staticmethod
    def from_json(data: object) -> QueryAnswer:
        """Read an answer back."""
        from hubbub.query.answer_json import answer_from_json

        return answer_from_json(data)

    def table(self, *, most: int = 50) -> Table:
        """A rich table; values and intervals are clipped to the possible range."""
        from hubbub.query.answer_view import rich_table

        return rich_table(self, most)

    def plot(self, column: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Bars of an estimate with its intervals, a group each; returns matplotlib's axes."""
        from hubbub.query.answer_view import bars

        return bars(self, column, ax)

    def __rich__(self) -> Table:
        return self.table()

    def __str__(self) -> str:
        return "\n".join("  ".join(line) for line in self.lines()) if self.columns else self.plan

    def lines(self) -> Iterator[Sequence[str]]:
        """The answer as lines of texts, the heading first; values and intervals are clipped to the possible range."""
        heading: list[str] = []
        for column in self.columns:
            heading += [column.name, f"{self.level:.0%} interval"] if column.estimate else [column.name]
        yield heading
        for row in self.rows:
            words: list[str] = []
            for cell in row:
                words += _shown(cell) if isinstance(cell, AnswerInterval) else ["NULL" if cell is None else str(cell)]
            yield words


def _shown(cell: AnswerInterval) -> list[str]:
    value, low, high = (min(max(number, cell.least), cell.most) for number in (cell.value, cell.low, cell.high))
    unknown = cell.high == math.inf and cell.low <= cell.least
    return [
        "NULL" if math.isnan(cell.value) else _number(value),
        "unknown" if unknown else f"{_number(low)} to {_number(high)}",
    ]


def _number(value: float) -> str:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:,.4g}"
