"""The answer of a query: a table in which every estimate has an interval; as JSON, as text, and as bars."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.drawing import html_rows
from hubbub.core.errors import DecodeError, InvalidValue, needs
from hubbub.core.spec import Json
from hubbub.core.tabular import Tabular
from hubbub.query.intervals import AnswerInterval

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
class QueryAnswer(Tabular):
    """A relation: keys of groups, and for each aggregate a value with its interval.

    Parameters
    ----------
    rows
        For each group the keys, and an `AnswerInterval` for each estimate.
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

    def to_json(self) -> dict[str, Json]:
        """The answer as JSON; `from_json` reads it back."""
        return answer_to_json(self)

    @staticmethod
    def from_json(data: object) -> QueryAnswer:
        """Read an answer back."""
        return answer_from_json(data)

    def table(self, *, most: int = 50) -> Table:
        """A rich table; values and intervals are clipped to the possible range."""
        return rich_table(self, most)

    def plot(self, column: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Bars of an estimate with its intervals, a group each; returns matplotlib's axes."""
        return bars(self, column, ax)

    def __rich__(self) -> Table:
        return self.table()

    def _repr_html_(self) -> str:
        heading, *lines = self.lines()
        return html_rows(lines, heading, caption=f"{self.n:,} people, bias: {self.bias}")

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


_PARTS = ("value", "low", "high", "stderr", "least", "most")


def answer_to_json(answer: QueryAnswer) -> dict[str, Json]:
    """An answer as JSON: a number that is not known is null, an end without a bound "inf" or "-inf"."""
    columns: list[Json] = [{"name": c.name, "estimate": c.estimate, "how": c.how} for c in answer.columns]
    rows: list[Json] = [[_cell(cell) for cell in row] for row in answer.rows]
    return {
        "columns": columns,
        "rows": rows,
        "level": answer.level,
        "n": answer.n,
        "bias": answer.bias,
        "notes": [*answer.notes],
        "explain": answer.plan,
    }


def answer_from_json(data: object) -> QueryAnswer:
    """Read an answer back; anything else is refused."""
    try:
        if not isinstance(data, Mapping):
            raise TypeError("no object")
        columns = tuple(
            AnswerColumn(str(column["name"]), bool(column["estimate"]), str(column["how"]))
            for column in data["columns"]
        )
        rows = tuple(
            tuple(_read(cell, column) for cell, column in zip(row, columns, strict=True)) for row in data["rows"]
        )
        notes = tuple(str(note) for note in data["notes"])
        level, n = float(data["level"]), int(data["n"])
        return QueryAnswer(columns, rows, level, n, str(data["bias"]), notes, str(data["explain"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DecodeError("answer", data, f"an answer in JSON: {error}") from None


def _cell(cell: object) -> Json:
    if isinstance(cell, AnswerInterval):
        return {part: _json_number(getattr(cell, part)) for part in _PARTS}
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, Decimal):
        return float(cell)
    return cell if cell is None or isinstance(cell, str | int | float | bool) else str(cell)


def _json_number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _read(cell: object, column: AnswerColumn) -> object:
    if not column.estimate:
        return cell
    if not isinstance(cell, Mapping):
        raise TypeError("an estimate is no object")
    numbers = {part: cell[part] for part in _PARTS}
    return AnswerInterval(**{part: math.nan if number is None else float(number) for part, number in numbers.items()})


MOST_BARS = 40


def rich_table(answer: QueryAnswer, most: int) -> Table:
    """An answer as a rich table; what cannot be told from 0 is dim."""
    with needs("sql"):
        from rich.markup import escape
        from rich.table import Table
    lines = iter(answer.lines())
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    heading = next(lines)
    words = [not column.estimate for column in answer.columns for _ in range(1 + column.estimate)]
    for name, left in zip(heading, words, strict=True):
        table.add_column(escape(name), justify="left" if left else "right")
    for row, line in list(zip(answer.rows, lines, strict=True))[:most]:
        cells = [cell for cell in row if isinstance(cell, AnswerInterval)]
        faint = bool(cells) and all(cell.low <= 0 <= cell.high for cell in cells)
        table.add_row(*map(escape, line), style="dim" if faint else None)
    if len(answer.rows) > most:
        table.add_row(f"... {len(answer.rows) - most:,} more", *[""] * (len(heading) - 1), style="dim")
    return table


def bars(answer: QueryAnswer, name: str | None, ax: Axes | None) -> Axes:
    """Bars of an estimate, a group each, with intervals."""
    with needs("sql"):
        from matplotlib.figure import Figure
    estimates = [column.name for column in answer.columns if column.estimate]
    chosen = name if name is not None else (estimates[0] if estimates else "")
    if chosen not in estimates:
        raise InvalidValue("column", chosen, f"one of the estimates {', '.join(estimates)}")
    keys = [place for place, column in enumerate(answer.columns) if not column.estimate]
    place = next(k for k, column in enumerate(answer.columns) if column.name == chosen)
    rows = answer.rows[:MOST_BARS][::-1]
    if ax is None:
        ax = Figure(figsize=(7, 0.9 + 0.28 * max(len(rows), 1)), layout="constrained").subplots()
    labels = [", ".join(str(row[key]) for key in keys).replace("$", r"\$") or chosen for row in rows]
    spots = np.arange(len(rows))
    cells = [cell for row in rows if isinstance(cell := row[place], AnswerInterval)]
    ax.barh(spots, [np.clip(cell.value, cell.least, cell.most) for cell in cells], color="#4c78a8")
    for spot, cell in zip(spots, cells, strict=True):
        ends = np.clip([cell.low, cell.high], cell.least, cell.most)
        if np.isfinite(ends).all():
            ax.plot(ends, [spot, spot], color="#333333", linewidth=1.5)
    ax.set_yticks(spots, labels)
    ax.axvline(0, color="#999999", linewidth=0.8)
    ax.set_xlabel(chosen)
    return ax
