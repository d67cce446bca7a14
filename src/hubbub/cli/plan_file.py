"""`hubbub plan FILE`: what the questions of a collection will tell, by the number of devices."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.core.errors import InvalidValue

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.authoring.alarms import AlarmForecast
    from hubbub.authoring.forecast import Forecast, Poisoning
    from hubbub.collection.document import Collection
    from hubbub.core.spec import Json
    from hubbub.mechanisms.frequency.oracle import FrequencyOracle
    from hubbub.planning.shuffled import FakesChoice


def plan_file(path: Path, *, forged: float, as_json: bool) -> None:
    """Print the expected errors of a collection's questions."""
    from hubbub.authoring.alarms import alarm_forecasts
    from hubbub.authoring.forecast import forecast, poisoning
    from hubbub.authoring.toml import load_alarms, read_collection
    from hubbub.cli.output import emit, page
    from hubbub.collection.spending import steps_a_year, total_of
    from hubbub.core.event import UNITS_PER_EPSILON

    collection = read_collection(path)
    watched = alarm_forecasts(collection, load_alarms(path))
    rows = forecast(collection)
    moved = {
        name: poisoning(question, collection.setting(name), forged) for name, question in collection.questions.items()
    }
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
                "alarms": [row.to_dict() for row in watched],
            }
        )
    tables = [_errors(collection, rows), _costs(rows), _forged(moved, forged)]
    tables += [_alarms(watched)] if watched else []
    for table in tables:
        page().print(table, "", sep="\n")
    for row in watched:
        page().print(f"{row.alarm}: {row.guarantee}.\n", markup=False)
    page().print(_summary(collection, year, user))
    return None


def _errors(collection: Collection, rows: list[Forecast]) -> Table:
    from hubbub.authoring.forecast import DEVICES
    from hubbub.cli.output import plain_table

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
    from hubbub.cli.output import plain_table

    table = plain_table("question", "mechanism", "bytes", "epsilon a year", "the error is that of", left=["mechanism"])
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    for row in rows:
        table.add_row(row.question, row.mechanism, f"{row.report_bytes:,}", f"{row.epsilon_a_year:,.4g}", row.note)
    return table


def _forged(moved: dict[str, Poisoning], forged: float) -> Table:
    from hubbub.cli.output import plain_table
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
    from hubbub.cli.output import plain_table

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
    from hubbub.collection.spending import cost_of
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


_SHOWN = 6
_MOST_LOCAL = 20.0


def plan_shuffled(
    *,
    domain: int,
    n: int,
    epsilon: float,
    delta: float,
    colluding: float | None,
    fakes: int | None,
    most_local: float | None,
    as_json: bool,
) -> None:
    """Print the mechanisms that keep to the targets, the best first, and the three epsilons of the best."""
    from hubbub.cli.output import emit, page, plain_table
    from hubbub.planning.shuffled import adversaries

    if fakes is not None and fakes < 0:
        raise InvalidValue("--fakes", fakes, "at least 0")
    choices = _choices(domain, n, epsilon, delta, colluding, fakes, _MOST_LOCAL if most_local is None else most_local)
    best = choices[0]
    left = adversaries(best.mechanism, n=n, delta=delta, fakes=best.fakes)
    if as_json:
        rows: list[dict[str, Json]] = [_row(choice, choice is best) for choice in choices]
        return emit({"domain": domain, "n": n, "mechanisms": rows, "against": left.to_dict()})
    fewest = f", and epsilon {colluding:g} if all other people collude" if colluding is not None else ""
    title = f"{domain:,} values, {n:,} reports, epsilon {epsilon:g} and delta {delta:g} once shuffled{fewest}\n"
    table = plain_table("mechanism", "local epsilon", "fakes", "stderr", "bytes", "", left=[""], title=title)
    for choice in choices[:_SHOWN]:
        row = _row(choice, choice is best)
        table.add_row(
            _named(choice.mechanism),
            f"{choice.mechanism.effective_epsilon:.4g}",
            f"{choice.fakes:,}",
            f"{100 * math.sqrt(choice.variance):.3g}%",
            str(row["bytes"]),
            "picked" if choice is best else "",
            style="bold green" if choice is best else None,
        )
    page().print(table)
    page().print(f"\nWith {_named(best.mechanism)}, a person's report is protected\n", markup=False)
    for sentence in left.sentences():
        page().print(f"- {sentence}", markup=False)
    return None


def _choices(
    domain: int,
    n: int,
    epsilon: float,
    delta: float,
    colluding: float | None,
    fakes: int | None,
    most_local: float,
) -> list[FakesChoice]:
    from hubbub.planning.shuffled import FakesChoice, choose_shuffled, choose_with_fakes

    if colluding is None and not fakes:
        plain = choose_shuffled(domain=domain, n=n, epsilon=epsilon, delta=delta, most_local=most_local)
        return [FakesChoice(choice.mechanism, 0, choice.variance) for choice in plain]
    return choose_with_fakes(
        domain=domain, n=n, epsilon=epsilon, delta=delta, colluding=colluding, most_local=most_local, fakes=fakes
    )


def _row(choice: FakesChoice, picked: bool) -> dict[str, Json]:
    return {
        "mechanism": type(choice.mechanism).__name__,
        "buckets": getattr(choice.mechanism, "buckets", None),
        "local_epsilon": choice.mechanism.effective_epsilon,
        "fakes": choice.fakes,
        "stderr": math.sqrt(choice.variance),
        "bytes": -(-choice.mechanism.report_bits // 8),
        "picked": picked,
    }


def _named(mechanism: FrequencyOracle) -> str:
    buckets = getattr(mechanism, "buckets", None)
    return type(mechanism).__name__ if buckets is None else f"{type(mechanism).__name__}, {buckets:,} buckets"
