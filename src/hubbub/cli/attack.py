"""`hubbub attack`: attacks on the real system, each with what it measured next to the bound that is stated."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli import output
from hubbub.cli.options import AsJson, Plot, Seed, named
from hubbub.core.errors import InvalidValue, needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hubbub.attacks.outcome import Attack, AttackOutcome
    from hubbub.questions.collection import Collection

_BROKEN = 1
_LIST = "list"
_CASE, _NUMBERS = 62, 54
_COLOURS = {True: "#4c78a8", False: "#e45756", None: "#888888"}


def attack(
    name: Annotated[str, typer.Argument(help='The attack, or "list".')] = _LIST,
    collection: Annotated[
        Path | None,
        typer.Option(
            "--collection", "-c", help="Attack the questions of this collection instead.", show_default="its own"
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="What one report may spend.")] = 1.0,
    people: Annotated[int, typer.Option("--people", "-n", help="How many honest devices there are.")] = 10_000,
    forged: Annotated[
        float, typer.Option("--forged", help="The part of all devices that is forged, or of the reports that is lost.")
    ] = 0.01,
    runs: Annotated[int, typer.Option("--runs", help="How often it is tried.")] = 20,
    seed: Seed = 1,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Attack simulated devices or a real collector on this machine: what comes of it, next to the bound that is stated?

    docs/attacks.md describes the attacks. Exit code 1 means that a measurement is not compatible with a bound.
    """
    from rich.markup import escape
    from rich.table import Table

    from hubbub.attacks import NAMES, attack_named
    from hubbub.attacks.outcome import AttackSetting

    chosen = named("name", name, (_LIST, *NAMES))
    if chosen == _LIST:
        attacks = {each: attack_named(each) for each in NAMES}
        if as_json:
            rows = [{"name": each, "title": one.title, "promise": one.promise} for each, one in attacks.items()]
            return output.emit({"attacks": rows})
        table = Table.grid(padding=(0, 2, 0, 0))
        for each, one in attacks.items():
            table.add_row(each, escape(one.title))
        return output.page().print(table)
    output.check_plot(plot)
    tried = attack_named(chosen)
    if collection is not None and not tried.collections:
        able = ", ".join(each for each in NAMES if attack_named(each).collections)
        raise InvalidValue("collection", str(collection), f"nothing: only {able} attacks the questions of a collection")
    setting = AttackSetting(
        epsilon=epsilon, people=people, forged=forged, runs=runs, seed=seed, collection=_read(collection)
    )
    outcomes: list[AttackOutcome] = []
    with output.progress(chosen) as follow:
        for outcome in tried.run(setting):
            outcomes.append(outcome)
            follow(len(outcomes), len(outcomes) + 1, outcome.case)
    if plot is not None:
        output.save_plot(_figure(chosen, tried, outcomes), plot)
    if as_json:
        cases = [outcome.to_dict() for outcome in outcomes]
        output.emit({"attack": chosen, "title": tried.title, "promise": tried.promise, "cases": cases})
    else:
        _print(tried, outcomes)
    raise typer.Exit(_BROKEN if any(outcome.within is False for outcome in outcomes) else 0)


def _read(path: Path | None) -> Collection | None:
    from hubbub.authoring.toml import load_collection

    return None if path is None else load_collection(path)


def _print(attack: Attack, outcomes: list[AttackOutcome]) -> None:
    page = output.page()
    table = output.plain_table("case", "measured", "99.9% interval", "bound", "", left=[""], title=f"{attack.title}\n")
    for outcome in outcomes:
        words = {True: "within", False: "BROKEN", None: "no promise"}[outcome.within]
        style = {True: None, False: "bold red", None: "dim"}[outcome.within]
        interval = f"{_number(outcome.low)} to {_number(outcome.high)}" if outcome.low != outcome.high else "exact"
        bound = "" if outcome.bound is None else _number(outcome.bound)
        measured = "not tried" if math.isnan(outcome.measured) else _number(outcome.measured)
        table.add_row(
            output.shorten(outcome.case, max(page.width - _NUMBERS, 16)),
            measured,
            "" if math.isnan(outcome.low) else interval,
            bound,
            words,
            style=style,
        )
    page.print(table)
    page.print(f"\n{attack.promise}", markup=False)
    for note in dict.fromkeys(f"{outcome.case}: {outcome.note}." for outcome in outcomes if outcome.note):
        page.print(f"  {note}", markup=False)


def _number(value: float) -> str:
    return f"{value:.4g}"


def _figure(name: str, attack: Attack, outcomes: list[AttackOutcome]) -> Figure:
    """What was measured in each case with its interval, and the bound; a panel for each unit."""
    import numpy as np

    with needs("analytics"):
        from matplotlib.figure import Figure
    shown = [outcome for outcome in outcomes if not math.isnan(outcome.measured)]
    units = [*dict.fromkeys(outcome.unit for outcome in shown)]
    heights = [sum(outcome.unit == unit for outcome in shown) + 1 for unit in units] or [1]
    chart = Figure(figsize=(9, 1.2 + 0.42 * sum(heights)), layout="constrained")
    panels = np.atleast_1d(chart.subplots(len(units) or 1, 1, height_ratios=heights))
    for unit, ax in zip(units, panels, strict=False):
        cases = [outcome for outcome in shown if outcome.unit == unit]
        places = np.arange(len(cases))[::-1]
        for place, outcome in zip(places, cases, strict=True):
            ax.hlines(place, outcome.low, outcome.high, color=_COLOURS[outcome.within], linewidth=2)
            ax.scatter([outcome.measured], [place], color=_COLOURS[outcome.within], s=30, zorder=3)
            if outcome.bound is not None:
                ax.vlines(outcome.bound, place - 0.35, place + 0.35, color="#f58518", linewidth=2.5)
        ax.set_yticks(places, [output.shorten(outcome.case, _CASE).replace("$", r"\$") for outcome in cases])
        ax.set_xlabel(unit)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(left=False)
        ax.axvline(0, color="#26303a", linewidth=0.8)
    panels[0].set_title(f"{name}: {attack.quantity}, with 99.9% intervals; orange is the bound")
    return chart
