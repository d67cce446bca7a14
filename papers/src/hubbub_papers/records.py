"""Records of what was run: what was asked for, when, how long it took, and every claim and printed number.

A record is a file of JSON with a line for each cell. `results/` holds the last ones that were kept, of runs in full.
`small_runs.csv` holds what small runs of each reproduction took, for those that have no such record.
"""

from __future__ import annotations

import csv
import json
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from hubbub import __version__
from hubbub_papers.harness import REPRODUCTIONS, Reproduction, reproduce
from hubbub_papers.result import Cell, ClaimCell, Result

KEPT = resources.files("hubbub_papers") / "results"
_DIGITS = 6
_FIRST = 60  # that many cells are kept of a table that the paper has no word on


@dataclass(frozen=True)
class Record:
    """What a run of a reproduction came to.

    Parameters
    ----------
    name, title
        Of the reproduction.
    day, version
        The day it was run on, and the version of hubbub.
    repeats, scale, seed
        What it was run with.
    seconds
        The time it took on one core.
    cells
        The claims, and the numbers that the paper has a word on; of a table without them, the first numbers.
    more
        How many numbers it measured besides.
    size
        Width and height of the figure in inches; None where there is none.
    failure
        Why it came to nothing, where it did.
    """

    name: str
    title: str
    day: str
    version: str
    repeats: int
    scale: float
    seed: int
    seconds: float = 0.0
    cells: tuple[Cell, ...] = ()
    more: int = 0
    size: tuple[float, float] | None = None
    failure: str = ""

    @property
    def claims(self) -> list[ClaimCell]:
        """The claims that were judged."""
        return [cell for cell in self.cells if isinstance(cell, ClaimCell)]

    @property
    def numbers(self) -> list[Cell]:
        """The numbers of ours that stand next to a number or a word of the paper, but for the claims."""
        return [cell for cell in self.cells if cell.column != "claim"]

    @property
    def whole(self) -> bool:
        """Whether it was run at the paper's size, as often as its reproduction asks for."""
        return not self.failure and self.scale == 1 and self.repeats >= REPRODUCTIONS[self.name].repeats

    def save(self, folder: Path) -> Path:
        """Write `<name>.json`, and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        head = {key: value for key, value in asdict(replace(self, cells=())).items() if key != "cells"}
        lines = [json.dumps(_row(cell), ensure_ascii=False) for cell in self.cells]
        text = json.dumps(head, ensure_ascii=False, indent=1)[:-2] + ',\n "cells": [\n' + ",\n".join(lines) + "\n]}\n"
        path = folder / f"{self.name}.json"
        written = path.with_suffix(".part")
        written.write_text(text, encoding="utf-8")
        return written.replace(path)


def _row(cell: Cell) -> list[Any]:
    """A cell as a line of a file: of a claim with its bounds and error; infinite and missing numbers are null.

    Numbers of claims are written in full: a rounded one could lie on the other side of its bound.
    """
    if not isinstance(cell, ClaimCell):
        return [cell.row, cell.column, cell.paper, _finite(float(f"{cell.ours:.{_DIGITS}g}")), cell.note]
    ends = (cell.above, cell.below, cell.error)
    return [cell.row, cell.column, cell.paper, _finite(cell.ours), cell.note, *map(_finite, ends)]


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _cell(row: list[Any]) -> Cell:
    heading, column, paper, ours, note, *claim = row
    number = math.nan if ours is None else float(ours)
    if not claim:
        return Cell(heading, column, paper, number, note)
    above, below, error = claim
    ends = (-math.inf if above is None else above, math.inf if below is None else below)
    return ClaimCell(heading, column, paper, number, note, *ends, error)


def read(folder: Any) -> dict[str, Record]:
    """The records of a folder, by the name of their reproduction, in the order of the papers."""
    found: dict[str, Record] = {}
    for name in REPRODUCTIONS:
        file = folder / f"{name}.json"
        if file.is_file():
            head = json.loads(file.read_text(encoding="utf-8"))
            size = head["size"] and tuple(head["size"])
            found[name] = Record(**{**head, "cells": tuple(map(_cell, head["cells"])), "size": size})
    return found


def record_of(result: Result, *, repeats: int, scale: float, seed: int, seconds: float) -> Record:
    """The record of a result: its claims, and the cells that the paper has a word on; or its first cells."""
    words = tuple(cell for cell in result.cells if cell.paper is not None or cell.column == "claim")
    cells = words or result.cells[:_FIRST]
    today = datetime.now(UTC).date().isoformat()
    size = None
    if result.figure is not None:
        width, height = result.figure.get_size_inches()
        size = (round(float(width), 2), round(float(height), 2))
    return Record(
        result.name, result.title, today, __version__, repeats, scale, seed, round(seconds, 1), cells,
        len(result.cells) - len(cells), size,
    )  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """What a reproduction is expected to take on one core: some seconds, and some for each run at the paper's size."""

    fixed: float
    each: float
    measured: bool

    def seconds(self, repeats: int, scale: float = 1.0) -> float:
        """The expected time of that many runs, at that scale."""
        return self.fixed + self.each * repeats * scale


@cache
def costs() -> Mapping[str, Cost]:
    """What each reproduction is expected to take: measured where a whole run was kept, else from small runs."""
    found: dict[str, Cost] = {}
    text = (resources.files("hubbub_papers") / "small_runs.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        found[row["name"]] = Cost(float(row["fixed"]), float(row["each"]), False)
    for name, record in read(KEPT).items():
        if record.whole:
            found[name] = Cost(0.0, record.seconds / record.repeats, True)
    return found


def expected(reproduction: Reproduction) -> str:
    """What a reproduction is expected to take in full, in words: "3 min", or "~3 min" if small runs tell so."""
    cost = costs().get(reproduction.name)
    if cost is None:
        return "?"
    return ("" if cost.measured else "~") + duration(cost.seconds(reproduction.repeats))


def duration(seconds: float) -> str:
    """A time in words: "under 1 s", "40 s", "3 min", "2.5 h"."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def run(name: str, folder: Path, *, repeats: int, scale: float, seed: int) -> Record:
    """Run a reproduction, and save its record, its CSV and its figure as SVG in the folder."""
    started = time.process_time()
    result = reproduce(name, repeats=repeats, scale=scale, seed=seed)
    result.save(folder)
    if result.figure is not None:
        result.figure.savefig(folder / f"{name}.svg", transparent=True, metadata={"Date": None})
    record = record_of(result, repeats=repeats, scale=scale, seed=seed, seconds=time.process_time() - started)
    record.save(folder)
    return record


if __name__ == "__main__":  # one reproduction in a process of its own, which the gallery may end
    import hubbub_papers.catalogue  # noqa: F401

    _name, _folder, _repeats, _scale, _seed, _seconds = sys.argv[1:]
    if int(_seconds):  # of computing: on a busy machine a run that is not slow may take long
        import resource

        _last = int(_seconds) + math.ceil(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (_last, _last + 5))
    run(_name, Path(_folder), repeats=int(_repeats), scale=float(_scale), seed=int(_seed))
