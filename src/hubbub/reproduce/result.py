"""What a reproduction returns: cells that stand beside the paper's, and a figure."""

from __future__ import annotations

import csv
import os
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.core.errors import MissingDependency

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

Printed = float | str | None
_REMARK = 26  # characters from which a remark that several cells share is a footnote


@dataclass(frozen=True)
class Cell:
    """One number of ours beside the paper's.

    Parameters
    ----------
    row, column
        Where it stands; the column is "claim" where a statement of the text is checked.
    paper
        The number the paper prints, its words ("O(log d)", "about 20%"), or None where it prints neither.
    ours
        The number computed or measured here.
    note
        How it was come by, and what differs from the paper's setting; remarks are parted by "; ".

    Example:
        >>> Cell("eps = 1", "OLH", paper=3.68, ours=3.6827, note="Eq 3.12").paper
        3.68
    """

    row: str
    column: str
    paper: Printed
    ours: float
    note: str = ""


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

    Example:
        >>> result = Result("demo", "A demonstration", (Cell("a", "b", None, 1.0),))
        >>> result.to_dicts()
        [{'row': 'a', 'column': 'b', 'paper': None, 'ours': 1.0, 'note': ''}]
    """

    name: str
    title: str
    cells: tuple[Cell, ...]
    figure: Figure | None = None

    def to_dicts(self) -> list[dict[str, Printed]]:
        """The cells as plain dictionaries, their keys always row, column, paper, ours, note."""
        return [asdict(cell) for cell in self.cells]

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write `<name>.csv`, and `<name>.png` where there is a figure; return their paths.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     [path.name for path in Result("demo", "", (Cell("a", "b", None, 1.0),)).save(folder)]
            ['demo.csv']
        """
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
        """A rich table. Where there are more than `most` cells, only claims, and what the paper prints.

        A remark that several cells share stands once, under the table.
        """
        try:
            from rich import box
            from rich.markup import escape
            from rich.table import Table
        except ImportError:
            raise MissingDependency("rich", "analytics") from None
        shown = list(self.cells)
        if len(shown) > most:
            shown = ([cell for cell in shown if cell.paper is not None or cell.column == "claim"] or shown)[:most]
        # A claim's note begins with the verdict, which stays where it is.
        parted = {cell: cell.note.split("; ") for cell in shown}
        remarks = Counter(part for cell in shown for part in parted[cell][cell.column == "claim" :])
        feet = [part for part, times in remarks.items() if times > 1 and len(part) > _REMARK]
        marks = {part: f"({number})" for number, part in enumerate(feet, start=1)}
        # Titles and notes are escaped: Var[c(i)] would pass for markup.
        table = Table(title=escape(f"{self.name}: {self.title}"), box=box.SIMPLE_HEAD, caption_justify="left")
        for heading in ("", "paper", "ours", "note"):
            table.add_column(heading, justify="right" if heading in ("paper", "ours") else "left")
        for cell in shown:
            what = cell.row if cell.column == "claim" else f"{cell.row}, {cell.column}"
            paper = "" if cell.paper is None else cell.paper if isinstance(cell.paper, str) else f"{cell.paper:.6g}"
            remark = "; ".join(part for part in parted[cell] if part not in marks)
            note = " ".join([remark, *(marks[part] for part in parted[cell] if part in marks)]).strip()
            table.add_row(*map(escape, (what, paper, f"{cell.ours:.5g}", note)))
        lines = [f"{mark} {part}" for part, mark in marks.items()]
        if len(shown) < len(self.cells):
            lines.append(f"{len(self.cells) - len(shown):,} measured values more are in the CSV file.")
        table.caption = escape("\n".join(lines)) or None
        return table

    def __rich__(self) -> Table:
        return self.table()
