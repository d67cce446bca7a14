"""A plan in words, as a table and as a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from hubbub.core.errors import InvalidValue, needs
from hubbub.planning.predict import (
    MOST_EPSILON,
    TIE,
    PlanRequest,
    Prediction,
    oracles,
    part_text,
    pick,
    standard_error,
    warns,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

    from hubbub.planning.plan import Plan


def reason(rows: Sequence[Prediction], picked: Prediction, request: PlanRequest, epsilon: float) -> str:
    """Why the oracle was picked, and what the rule of section 3.4.1 says for a domain of this size."""
    within = "" if request.most_bytes is None else f" of the reports within {request.most_bytes} bytes"
    if request.most_shift is not None:
        within += f", of those that {part_text(request.forged)} forged reports move by at most {request.most_shift:.3g}"
    errors = [row.stderr for row in rows if row.stderr is not None and pick([row], request) is not None]
    if picked.stderr is not None and round(picked.stderr / min(errors), 3) == 1:
        first = f"{picked.mechanism} has the smallest standard error{within}."
    else:
        first = f"{picked.mechanism} is within 1% of the smallest standard error{within}, and costs the server least."
    limit = 3 * math.exp(min(epsilon, 700.0)) + 2
    if request.size < limit:
        return f"{first} d = {request.size:,} is below 3 e^eps + 2 = {limit:,.4g}, where direct encoding (GRR) is best."
    compared = f"d = {request.size:,} is not below 3 e^eps + 2 = {limit:,.4g}"
    return f"{first} {compared}, so direct encoding (GRR) has more error."


def explained(row: Prediction, picked: Prediction, request: PlanRequest) -> Prediction:
    """The row, marked as picked or with the reason why not."""
    if row is picked:
        return replace(row, picked=True, why="picked")
    if row.stderr is None or picked.stderr is None:
        return row
    if row.bias != "none":
        return replace(row, why="never picked: a bias that no number of reports removes")
    if not request.fits(row.bytes):
        return replace(row, why=f"{row.bytes:,} bytes per report, above {request.most_bytes:,}")
    if not request.tolerates(row.shift):
        assert row.shift is not None
        moved = f"{part_text(request.forged)} forged reports move a share by {row.shift:.3g}"
        return replace(row, why=f"{moved}, above {request.most_shift:.3g}")
    times = row.stderr / picked.stderr
    if times >= 2:
        return replace(row, why=f"{times:.1f} times the error of {picked.mechanism}")
    if times > 1 + TIE:
        return replace(row, why=f"{times - 1:.0%} more error than {picked.mechanism}")
    return replace(row, why=f"as accurate as {picked.mechanism}, which costs no more")


def moved_far(rows: Sequence[Prediction], picked: Prediction, request: PlanRequest) -> tuple[str, ...]:
    """A warning for each oracle that forged reports can move much further than the picked one."""
    assert picked.shift is not None
    return tuple(
        f"{row.mechanism}: if {part_text(request.forged)} of the reports are forged, they can move a share by "
        f"{100 * row.shift:.1f} percentage points, {row.shift / picked.shift:.0f} times as far as with "
        f"{picked.mechanism}."
        for row in rows
        if row.shift is not None and warns(row.shift / request.forged, picked.shift / request.forged)
    )


_POINTS = 25
_LEAST_EPSILON_SHOWN = 0.1


def title(plan: Plan) -> str:
    """What the plan is for."""
    return f"{plan.request.size:,} values, {plan.n:,} reports, epsilon {plan.epsilon:.4g}"


def headings(plan: Plan) -> tuple[str, ...]:
    """The headings of `lines`."""
    forged = f"{part_text(plan.request.forged)} forged move a share by"
    return ("oracle", "standard error", "detectable share", forged, "bytes", "server operations", "why")


def lines(plan: Plan) -> list[tuple[str, ...]]:
    """What the plan says of each oracle."""

    def line(row: Prediction) -> tuple[str, ...]:
        numbers = (row.stderr, row.detectable, row.shift, row.bytes, row.server)
        return (row.mechanism, *("-" if number is None else f"{number:.4g}" for number in numbers), row.why)

    return [line(row) for row in plan.rows]


def table(plan: Plan) -> Table:
    """A rich table of the oracles; the picked one is bold."""
    with needs("analytics"):
        from rich.table import Table
    out = Table(title=title(plan), caption=" ".join((plan.why, *plan.warnings)))
    for heading in headings(plan):
        out.add_column(heading, justify="left" if heading in ("oracle", "why") else "right")
    for row, line in zip(plan.rows, lines(plan), strict=True):
        out.add_row(*line, style="bold" if row.picked else None if row.stderr is not None else "dim")
    return out


def plot(plan: Plan, against: Literal["epsilon", "n"], ax: Axes | None = None) -> Axes:
    """Lines of standard error against epsilon or n; returns matplotlib's axes."""
    with needs("analytics"):
        from matplotlib.figure import Figure
    if against not in ("epsilon", "n"):
        raise InvalidValue("against", against, "epsilon or n")
    if ax is None:
        ax = Figure(figsize=(7, 4.5), layout="constrained").subplots()
    names = {row.mechanism for row in plan.rows if row.stderr is not None}
    for kind in oracles():
        if kind.__name__ not in names:
            continue
        if against == "epsilon":
            low, high = max(plan.epsilon / 8, _LEAST_EPSILON_SHOWN), min(plan.epsilon * 8, MOST_EPSILON)
            x = np.geomspace(min(low, plan.epsilon), max(high, plan.epsilon), _POINTS)
            y = [standard_error(kind, plan.request, plan.n, epsilon) for epsilon in x.tolist()]
        else:
            x = np.geomspace(max(1, plan.n // 100), plan.n * 100, _POINTS).round()
            single = standard_error(kind, plan.request, 1, plan.epsilon)
            y = (single / np.sqrt(x)).tolist()
        picked = kind.__name__ == plan.picked
        ax.plot(x, y, label=kind.__name__, linewidth=2.5 if picked else 1.0, zorder=3 if picked else 2)
    ax.plot(plan.epsilon if against == "epsilon" else plan.n, plan.stderr, "o", color="#333333", zorder=4)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("epsilon" if against == "epsilon" else "reports")
    ax.set_ylabel("standard error of a share")
    ax.legend(fontsize="small")
    return ax
