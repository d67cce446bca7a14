"""`hubbub plan FILE`: what the questions of a collection will tell, by the number of devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.options import AsJson, Forged
from hubbub.cli.output import emit, page, plain_table

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.authoring.alarms import AlarmForecast
    from hubbub.authoring.forecast import Divided, Forecast, Poisoning
    from hubbub.questions.collection import Collection


def plan_file(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A collection (TOML).", show_default=False)],
    forged: Forged = None,
    as_json: AsJson = False,
) -> None:
    """A collection's file: what error its questions will have, what they cost, and how far forged devices move them."""
    from hubbub.authoring.alarms import alarm_forecasts
    from hubbub.authoring.forecast import forecast, people_or_epsilon, poisoning
    from hubbub.authoring.toml import load_alarms, read_collection
    from hubbub.core.event import UNITS_PER_EPSILON
    from hubbub.planning.predict import FORGED
    from hubbub.questions.spending import steps_a_year, total_of

    forged = FORGED if forged is None else forged
    collection = read_collection(path)
    watched = alarm_forecasts(collection, load_alarms(path))
    rows = forecast(collection)
    moved = {name: poisoning(question, forged) for name, question in collection.questions.items()}
    divided = people_or_epsilon(collection)
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
                "poisoning": {name: {**how.to_dict(), "text": how.text()} for name, how in moved.items()},
                "divided": [row.to_dict() for row in divided],
                "alarms": [row.to_dict() for row in watched],
            }
        )
    tables = [_errors(collection, rows), _costs(rows), _forged(moved, forged)]
    tables += [_divided(divided)] if divided else []
    tables += [_alarms(watched)] if watched else []
    for table in tables:
        page().print(table, "", sep="\n")
    for row in watched:
        page().print(f"{row.alarm}: {row.guarantee}.\n", markup=False)
    page().print(_summary(collection, year, user))
    return None


def _errors(collection: Collection, rows: list[Forecast]) -> Table:
    from hubbub.authoring.forecast import DEVICES

    title = f"{collection.name} {collection.version}: the standard error to expect, by the number of devices\n"
    devices = [f"{n:,}" for n in DEVICES]
    table = plain_table("question", *devices, title=title)
    for row in rows:
        table.add_row(row.question, *(_moved(row.errors[n], row.unit) for n in DEVICES))
        if any(row.least.values()):
            least = (_moved(row.least[n], row.unit) for n in DEVICES)
            table.add_row("  no mechanism has less than", *least, style="dim")
    return table


def _divided(rows: list[Divided]) -> Table:
    from hubbub.authoring.forecast import DEVICES

    title = "If devices answer one question each, and if all answer all with a part of epsilon, at the same cost\n"
    table = plain_table("question", "divided", *(f"{n:,}" for n in DEVICES), title=title, left=["divided"])
    for row in rows:
        table.add_row(row.question, "people", *(_moved(row.people[n], row.unit) for n in DEVICES))
        table.add_row("", "epsilon", *(_moved(row.epsilon[n], row.unit) for n in DEVICES))
    return table


def _costs(rows: list[Forecast]) -> Table:
    table = plain_table("question", "mechanism", "bytes", "epsilon a year", "the error is that of", left=["mechanism"])
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    for row in rows:
        table.add_row(row.question, row.mechanism, f"{row.report_bytes:,}", f"{row.epsilon_a_year:,.4g}", row.note)
    return table


def _forged(moved: dict[str, Poisoning], forged: float) -> Table:
    from hubbub.planning.predict import part_text

    title = f"How far any answer can be moved if {part_text(forged)} of the devices are forged\n"
    table = plain_table("question", "up", "down", "where", title=title)
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    for name, how in moved.items():
        note = how.note if how.up is not None else f"not bounded here: {how.note}"
        table.add_row(name, *(_moved(distance, how.unit) for distance in (how.up, how.down)), note)
    return table


def _alarms(watched: list[AlarmForecast]) -> Table:
    from hubbub.authoring.forecast import DEVICES

    title = "The jump that an alarm finds, half of the time within the given steps, by the number of devices\n"
    table = plain_table("alarm", "steps", *(f"{n:,}" for n in DEVICES), title=title)
    for row in watched:
        for place, (jump, steps) in enumerate(row.steps.items()):
            sizes = (None if error is None else float(jump) * error for error in row.errors.values())
            table.add_row("" if place else row.alarm, str(steps or "-"), *(_moved(size, row.unit) for size in sizes))
    return table


def _moved(distance: float | None, unit: str) -> str:
    if distance is None:
        return "-"
    return f"{100 * distance:.3g}%" if unit == "share" else f"{distance:.3g}"


def _summary(collection: Collection, year: float, user: float | None) -> str:
    from hubbub.questions.spending import cost_of
    from hubbub.questions.words import listed

    spent = f"epsilon {year:,.6g} a year"
    if user is None:
        spent += ", and has no limit for life"
    elif year > user:
        spent = f"epsilon {user:,.6g}, its limit for life, within a year"
    else:
        spent += f", and {user:,.6g} for life"
    memos = [name for name in collection.questions if cost_of(collection, name).memo]
    stay = f" The year is one in which the values of {listed(memos)} do not change." if memos else ""
    return f"Every upload has {collection.frame_bytes:,} bytes. A device spends up to {spent}.{stay}"
