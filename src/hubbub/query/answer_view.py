"""Answers to look at: a table for the terminal, bars with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.errors import InvalidValue, needs
from hubbub.query.outputs import AnswerInterval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

    from hubbub.query.answer import QueryAnswer

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
    cells = [row[place] for row in rows]
    ax.barh(spots, [np.clip(cell.value, cell.least, cell.most) for cell in cells], color="#4c78a8")
    for spot, cell in zip(spots, cells, strict=True):
        ends = np.clip([cell.low, cell.high], cell.least, cell.most)
        if np.isfinite(ends).all():
            ax.plot(ends, [spot, spot], color="#333333", linewidth=1.5)
    ax.set_yticks(spots, labels)
    ax.axvline(0, color="#999999", linewidth=0.8)
    ax.set_xlabel(chosen)
    return ax
