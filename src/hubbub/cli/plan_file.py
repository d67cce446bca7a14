"""`hubbub plan FILE`: what the questions of a collection will tell, at so many devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.collection.forecast import Forecast
    from hubbub.collection.spec import Collection

__all__ = ["plan_file"]


def plan_file(path: Path, *, as_json: bool) -> None:
    """Print the expected errors of a collection's questions."""
    from hubbub.cli.output import emit, page
    from hubbub.collection.forecast import forecast
    from hubbub.collection.spending import steps_a_year, total_of
    from hubbub.collection.toml import read_collection
    from hubbub.core.event import UNITS_PER_EPSILON

    collection = read_collection(path)
    rows = forecast(collection)
    year = total_of(collection, steps_a_year(collection)) / UNITS_PER_EPSILON
    user = None if collection.budget.user is None else collection.budget.user / UNITS_PER_EPSILON
    if as_json:
        return emit(
            {
                "name": collection.name,
                "version": collection.version,
                "frame_bytes": collection.frame_bytes,
                "epsilon_a_year": year,
                "epsilon_for_life": user,
                "questions": [row.to_dict() for row in rows],
            }
        )
    page().print(_errors(collection, rows), "", _costs(rows), "", _summary(collection, year, user), sep="\n")
    return None


def _errors(collection: Collection, rows: list[Forecast]) -> Table:
    from hubbub.cli.tables import plain_table
    from hubbub.collection.forecast import DEVICES

    title = f"{collection.name} {collection.version}: the standard error to expect, by the number of devices\n"
    devices = [f"{n:,}" for n in DEVICES]
    table = plain_table("question", *devices, title=title)
    for row in rows:
        table.add_row(row.question, *(_error(row, n) for n in DEVICES))
    return table


def _error(row: Forecast, n: int) -> str:
    error = row.errors[n]
    if error is None:
        return "-"
    return f"{100 * error:.3g}%" if row.unit == "share" else f"{error:.3g}"


def _costs(rows: list[Forecast]) -> Table:
    from hubbub.cli.tables import plain_table

    table = plain_table("question", "mechanism", "bytes", "epsilon a year", "the error is that of", left=["mechanism"])
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    for row in rows:
        table.add_row(row.question, row.mechanism, f"{row.report_bytes:,}", f"{row.epsilon_a_year:,.4g}", row.note)
    return table


def _summary(collection: Collection, year: float, user: float | None) -> str:
    life = "without a limit for life" if user is None else f"of {user:,.6g} for life"
    return (
        f"Every upload has {collection.frame_bytes:,} bytes. A device spends up to epsilon {year:,.6g} a year, {life}; "
        "of memos, while their values stay."
    )
