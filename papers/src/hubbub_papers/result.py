"""The result of a reproduction: cells, each a number of ours next to the paper's, judged claims, and a figure."""

from __future__ import annotations

import csv
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

Printed = float | str | None
_SHORT_REMARK = 26  # a longer remark that several cells share becomes a footnote


@dataclass(frozen=True)
class Cell:
    """One number of ours next to the paper's.

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


@dataclass(frozen=True)
class ClaimCell(Cell):
    """The cell of a claim, with its bounds and the standard error of its number.

    Parameters
    ----------
    above, below
        The bounds between which the claim holds.
    error
        The standard error: 0 where the number is exact, None where there were too few runs for one.
    """

    above: float = -math.inf
    below: float = math.inf
    error: float | None = 0.0

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`; too close to call if the number is within two standard errors of a bound."""
        margin = min(self.ours - self.above, self.below - self.ours)
        return VERDICTS[2 if abs(margin) < 2 * (self.error or 0.0) else 0 if margin > 0 else 1]

    @property
    def decided(self) -> bool:
        """Whether more runs would hardly change the verdict: the noise is known, and the bounds are outside of it."""
        return self.error is not None and self.verdict != VERDICTS[2]


def joined(*remarks: str | None) -> str:
    """A note of several remarks; empty ones are left out."""
    return "; ".join(filter(None, remarks))


@dataclass(frozen=True, eq=False)
class Result:
    """A reproduced table or figure."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    figure: Figure | None = None

    def to_dicts(self) -> list[dict[str, Printed]]:
        """The cells as plain dictionaries, their keys always row, column, paper, ours, note."""
        return [{field.name: getattr(cell, field.name) for field in fields(Cell)} for cell in self.cells]

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
        remarks, footnotes = remarks_of(shown)
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


def remarks_of(cells: Sequence[Cell]) -> tuple[dict[Cell, list[str]], list[str]]:
    """The remarks of each cell's note, and the longer ones that several cells share: footnotes.

    The first remark of a claim is its verdict, which never becomes a footnote.
    """
    remarks = {cell: cell.note.split("; ") for cell in cells}
    uses = Counter(remark for cell in cells for remark in remarks[cell][cell.column == "claim" :])
    return remarks, [remark for remark, times in uses.items() if times > 1 and len(remark) > _SHORT_REMARK]


_ALIKE = 2e-3  # what computed numbers of exact statements may differ by
_WORDS = {"half": 0.5, "most": 0.5, "twice": 2.0, "order": 10.0, "one to two magnitudes": 10.0, "two magnitudes": 100.0}


def _told(words: str) -> list[float]:
    """The numbers that are printed in words, such as 0.6 and 100 in "over 60%" and "2 orders of magnitude"."""
    powers = re.findall(r"(\d) orders", words)
    plain = re.findall(r"(?<![\w^.])(\d+(?:\.\d+)?)(%?)(?! orders)", words)
    numbers = [float(number) / (100 if percent else 1) for number, percent in plain] + [10.0 ** int(k) for k in powers]
    if not powers:
        numbers += [number for word, number in _WORDS.items() if word in words]
    return [*numbers, *(10.0 ** int(power) for power in re.findall(r"10\^(\d)", words))]


VERDICTS = ("holds", "does not hold here", "too close to call")
FEWEST_RUNS = 3
"""With fewer runs no standard error is stated."""
Key = TypeVar("Key")


@dataclass(frozen=True)
class Claim:
    """A statement that holds where our number lies between two bounds.

    Parameters
    ----------
    statement
        What is claimed, as far as possible in the paper's words.
    ours
        The number computed or measured here.
    paper
        The number or the words that the paper prints, or None. Never a number of our own theory, nor the value that a
        ratio ideally has.
    above, below
        The bounds: those of the statement, or, where the paper gives a number, those within which we call it equal.
    note
        Remarks, as in `Cell`.
    """

    statement: str
    ours: float
    paper: float | str | None = None
    above: float = -math.inf
    below: float = math.inf
    note: str = ""

    @property
    def bounds_are_told(self) -> bool:
        """Whether the bounds are the paper's: its number or one of its words; or, where it prints none, 0 or 1."""
        told = _told(str(self.paper or "")) if isinstance(self.paper, str | None) else [float(self.paper)]
        ends = [bound for bound in (self.above, self.below) if math.isfinite(bound)]
        if self.below - self.above == 1 and self.above + 0.5 in told:  # a whole number
            return True
        return all(any(abs(bound - number) <= _ALIKE * max(1, number) for number in told or (0, 1)) for bound in ends)

    def cell(self, error: float | None = 0.0) -> ClaimCell:
        """The verdict as a cell; the error is None where it is not known, and 0 where our number is exact."""
        place = (self.statement, "claim", self.paper, float(self.ours))
        ends = (("above", self.above), ("below", self.below))
        bounds = ", ".join(f"{word} {bound:g}" for word, bound in ends if math.isfinite(bound))
        verdict = ClaimCell(*place, "", self.above, self.below, error).verdict
        remarks = [f"{verdict} ({bounds})"]
        if error:
            remarks.append(f"standard error {error:.2g}")
        if self.note:
            remarks.append(self.note)
        if not self.bounds_are_told:
            remarks.append("the bounds are ours" if ", " in bounds else "the bound is ours")
        return ClaimCell(*place, "; ".join(remarks), self.above, self.below, error)


def judged(
    claims_of: Callable[[Mapping[Key, NDArray[Any]]], Sequence[Claim]], runs: Mapping[Key, NDArray[Any]]
) -> list[Cell]:
    """The verdicts on claims about measured numbers, with jackknife standard errors.

    For the jackknife `claims_of` is called once for each run, with all runs but that one. With fewer than three runs
    no standard errors are stated.

    `claims_of` must make always the same claims, in the same order.
    """
    claims = claims_of(runs)
    number = fewest_runs(runs)
    if number < FEWEST_RUNS:
        return [claim.cell(None) for claim in claims]
    without = np.array(
        [
            [claim.ours for claim in claims_of({key: np.delete(rows, run, axis=0) for key, rows in runs.items()})]
            for run in range(number)
        ]
    )
    errors = np.sqrt((number - 1) * without.var(axis=0))
    return [claim.cell(float(error)) for claim, error in zip(claims, errors, strict=True)]


def fewest_runs(runs: Mapping[Key, NDArray[Any]]) -> int:
    """The number of runs of the setting that has the fewest."""
    return min(len(rows) for rows in runs.values())


def means(runs: Mapping[Key, NDArray[Any]]) -> dict[Key, float]:
    """The mean score of each setting."""
    return {key: float(scores.mean()) for key, scores in runs.items()}


def ratio(above: float, below: float) -> float:
    """The quotient of two numbers; NaN if the divisor is 0, as happens in populations of a few people."""
    return float(above) / float(below) if below else math.nan
