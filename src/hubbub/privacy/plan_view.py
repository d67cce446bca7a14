"""A plan as a table and as a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from hubbub.core.errors import InvalidValue, needs
from hubbub.privacy.poisoning import part_text
from hubbub.privacy.predict import oracles
from hubbub.privacy.solve import MOST_EPSILON, standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

    from hubbub.privacy.plan import Plan

_POINTS = 25
_LEAST_EPSILON_SHOWN = 0.1


def table(plan: Plan) -> Table:
    """A rich table of the oracles; the picked one is bold."""
    with needs("analytics"):
        from rich.table import Table
    title = f"{plan.request.size:,} values, {plan.n:,} reports, epsilon {plan.epsilon:.4g}"
    out = Table(title=title, caption=" ".join((plan.why, *plan.warnings)))
    forged = f"{part_text(plan.request.forged)} forged move a share by"
    for heading in ("oracle", "standard error", "detectable share", forged, "bytes", "server operations", "why"):
        out.add_column(heading, justify="left" if heading in ("oracle", "why") else "right")
    for row in plan.rows:
        numbers = (row.stderr, row.detectable, row.shift, row.bytes, row.server)
        cells = ("-" if number is None else f"{number:.4g}" for number in numbers)
        style = "bold" if row.picked else None if row.stderr is not None else "dim"
        out.add_row(row.mechanism, *cells, row.why, style=style)
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
