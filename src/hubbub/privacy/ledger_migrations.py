"""The time of debits in ledgers of the first format, which stored steps only."""

from __future__ import annotations

from typing import Any, NamedTuple


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
    """The last moment of a step: where only the step of a debit is known, the debit is dated there.

    Example:
        >>> last_tick(Grid(interval=60, origin=5), 1)
        124
    """
    return grid.origin + (step + 1) * grid.interval - 1
