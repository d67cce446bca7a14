"""The result of a reproduction: cells, each a number of ours beside the paper's, and a figure."""

from __future__ import annotations

import csv
import os
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.core.errors import needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

Printed = float | str | None
_SHORT_REMARK = 26  # a longer remark that several cells share becomes a footnote


@dataclass(frozen=True)
class Cell:
    """One number of ours beside the paper's.

    Parameters
    ----------
    row, column
        Its place in the table; the column is "claim" where a statement of the paper's text is checked.
    paper
        The number that the paper prints, its words ("O(log d)", "about 20%"), or None where it prints neither.
    ours
        The number computed or measured here.
    note
        How the number was obtained, and what differs from the paper's setting: remarks, separated by "; ".
    """

    row: str
    column: str
    paper: Printed
    ours: float
    note: str = ""


def joined(*remarks: str | None) -> str:
    """A note of several remarks; empty ones are left out."""
    return "; ".join(filter(None, remarks))


@dataclass(frozen=True, eq=False)
class Result:
    """A reproduced table or figure.

    Parameters
    ----------
    name, title
        What was reproduced.
    cells
        Its numbers.
    figure
        Its drawing, where it has one.
    """

    name: str
    title: str
    cells: tuple[Cell, ...]
    figure: Figure | None = None

    def to_dicts(self) -> list[dict[str, Printed]]:
        """The cells as plain dictionaries, their keys always row, column, paper, ours, note."""
        return [asdict(cell) for cell in self.cells]

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write `<name>.csv`, and `<name>.png` where there is a figure; return their paths."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / f"{self.name}.csv"]
        with paths[0].open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["row", "column", "paper", "ours", "note"])
            writer.writeheader()
            writer.writerows(self.to_dicts())
        if self.figure is not None:
            paths.append(target / f"{self.name}.png")
            self.figure.savefig(paths[1], dpi=150)
        return tuple(paths)

    def table(self, *, most: int = 60) -> Table:
        """The cells as a rich table; of more than `most`, only the claims and those with a number of the paper's.

        A long remark that several cells share is printed once, under the table.
        """
        with needs("analytics"):
            from rich import box
            from rich.markup import escape
            from rich.table import Table
        shown = list(self.cells)
        if len(shown) > most:
            shown = ([cell for cell in shown if cell.paper is not None or cell.column == "claim"] or shown)[:most]
        # The first remark of a claim is its verdict, which never becomes a footnote.
        remarks = {cell: cell.note.split("; ") for cell in shown}
        uses = Counter(remark for cell in shown for remark in remarks[cell][cell.column == "claim" :])
        footnotes = [remark for remark, times in uses.items() if times > 1 and len(remark) > _SHORT_REMARK]
        marks = {remark: f"({number})" for number, remark in enumerate(footnotes, start=1)}
        # Titles and notes are escaped: rich would read Var[c(i)] as markup.
        table = Table(title=escape(f"{self.name}: {self.title}"), box=box.SIMPLE_HEAD, caption_justify="left")
        for heading in ("", "paper", "ours", "note"):
            table.add_column(heading, justify="right" if heading in ("paper", "ours") else "left")
        for cell in shown:
            heading = cell.row if cell.column == "claim" else f"{cell.row}, {cell.column}"
            paper = "" if cell.paper is None else cell.paper if isinstance(cell.paper, str) else f"{cell.paper:.6g}"
            own = "; ".join(remark for remark in remarks[cell] if remark not in marks)
            note = " ".join([own, *(marks[remark] for remark in remarks[cell] if remark in marks)]).strip()
            table.add_row(*map(escape, (heading, paper, f"{cell.ours:.5g}", note)))
        lines = [f"{mark} {remark}" for remark, mark in marks.items()]
        if len(shown) < len(self.cells):
            lines.append(f"{len(self.cells) - len(shown):,} measured values more are in the CSV file.")
        table.caption = escape("\n".join(lines)) or None
        return table

    def __rich__(self) -> Table:
        return self.table()
