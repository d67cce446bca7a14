"""What ledgers of older formats become: their debits on the grids of promises."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from hubbub.core.migrations import Run

__all__ = ["Grid", "from_1", "grid_of", "last_tick"]


class Grid(NamedTuple):
    """The steps of a ledger of format 1: step t begins at origin + t interval."""

    interval: int
    origin: int


def grid_of(clock: dict[str, Any]) -> Grid:
    """The grid of a clock, as the terms of a ledger have it.

    Example:
        >>> grid_of({"clock": "step"}), grid_of({"clock": "device", "interval": 60, "origin": 5})
        (Grid(interval=1, origin=0), Grid(interval=60, origin=5))
    """
    return Grid(int(clock.get("interval", 1)), int(clock.get("origin", 0)))


def last_tick(grid: Grid, step: int) -> int:
    """The last moment of a step: a debit of which no more than the step is known counts from there.

    Example:
        >>> last_tick(Grid(interval=60, origin=5), 1)
        124
    """
    return grid.origin + (step + 1) * grid.interval - 1


def from_1(run: Run) -> None:
    """Format 1 had debits by step, one account, and one grid.

    Example:
        >>> from hubbub.privacy.ledger import FORMAT
        >>> FORMAT.migrations[1] is from_1
        True
    """
    from hubbub.privacy.ledger_store import TABLES

    ((text,),) = run("SELECT terms FROM terms")
    grid = grid_of(json.loads(text)["clock"])
    ((lifetime, latest, *seen),) = run("SELECT lifetime, latest, step, wall, monotonic, trusted FROM account")
    debits = run("SELECT step, spent, trusted FROM debits ORDER BY step")
    frozen = run("SELECT field, step, value FROM frozen")
    for table in ("account", "debits", "frozen"):
        run(f"DROP TABLE {table}")
    for statement in TABLES:
        run(statement)
    begun = None if latest < 0 else grid.origin + latest * grid.interval
    run("UPDATE times SET latest = ?, step = ?, wall = ?, monotonic = ?, trusted = ?", begun, *seen)
    for step, spent, trusted in debits:
        run(
            "INSERT INTO debits (account, question, spent, wall, trusted) VALUES ('asks', 'asks', ?, ?, ?)",
            *(spent, last_tick(grid, step), trusted),
        )
    run("INSERT INTO totals VALUES ('asks', 'asks', ?)", lifetime)
    for field, step, value in frozen:
        run("INSERT INTO frozen VALUES (?, ?, ?)", field, grid.origin + step * grid.interval, value)
