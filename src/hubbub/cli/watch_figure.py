"""A watched stream as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.cli.output import shorten
from hubbub.core.errors import needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hubbub.demo.moment import Watched


def figure(run: Watched, name: str, head: str) -> Figure:
    """The whole run: the estimate in its band, what was published, when the alarm was on; thresholds, and any truth."""
    with needs("analytics"):
        from matplotlib.figure import Figure
    scale, moments = 100.0 if run.share else 1.0, run.moments
    x: Any = np.array([moment.step for moment in moments])
    if run.times is not None:
        x = np.array([round(run.times.begins(step)) for step in x], dtype="datetime64[s]")
    numbers = np.array([(moment.value, moment.low, moment.high, moment.truth) for moment in moments])
    value, low, high, truth = scale * numbers.T
    fresh, on = (np.array([getattr(moment, field) for moment in moments]) for field in ("published", "alarm"))
    chart = Figure(figsize=(10, 5), layout="constrained")
    ax = chart.subplots()
    ax.fill_between(x, low, high, step="mid", color="#4c78a8", alpha=0.25, linewidth=0, label="95% interval")
    behind = ax.fill_between(x, 0, 1, where=on, step="mid", transform=ax.get_xaxis_transform(), label="alarm on")
    behind.set(color="#c8443c", alpha=0.15, linewidth=0)
    for bound, style, words in zip(run.thresholds, ("--", ":"), ("alarm goes on above", "and off below"), strict=False):
        if style == "--" or bound != run.thresholds[0]:
            ax.axhline(scale * bound, color="#f58518", linestyle=style, linewidth=1.2, label=words)
    if not np.isnan(truth).all():
        ax.plot(x, truth, color="#888888", linewidth=1.2, label="truth (simulated)")
    ax.step(x, value, where="mid", color="#26547c", linewidth=1.5, label="estimate")
    ax.plot(x[fresh], value[fresh], ".", color="#26547c", markersize=6, label="published")
    ax.set_xlabel("step" if run.times is None else "time (UTC)")
    ax.set_ylabel("percent of devices" if run.share else "mean")
    ax.set_title(f"{shorten(name, 50)}: {head}".replace("$", r"\$"))  # a dollar would begin a formula
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0.01)
    chart.legend(loc="outside lower center", ncols=7, frameon=False, fontsize="small")
    return chart
