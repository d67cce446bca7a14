"""An estimate beside the truth, where the truth is known: as rows, as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import needs
from hubbub.core.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST = 40
_BLUE, _PALE, _INK, _ORANGE, _GREY = "#4c78a8", "#c3cedb", "#26303a", "#f58518", "#888888"


class ShareRow(NamedTuple):
    """One value: its share in truth, as estimated, its 95% interval, and whether it is more than chance."""

    value: str
    truth: float
    estimate: float
    low: float
    high: float
    significant: bool


def rows(estimate: Estimate, truth: NDArray[np.float64], threshold: float, most: int | None = None) -> list[ShareRow]:
    """The largest estimates, largest first."""
    low, high = estimate.interval(0.95)
    names = estimate.names()
    return [
        ShareRow(
            names[i],
            float(truth[i]),
            float(estimate.value[i]),
            float(low[i]),
            float(high[i]),
            bool(estimate.value[i] > threshold),
        )
        for i in estimate.top(len(estimate) if most is None else most)
    ]


def figure(shown: list[ShareRow], names: list[str], threshold: float, title: str) -> Figure:
    """Bars with their intervals against the truth, and the line that chance alone may reach."""
    with needs("analytics"):
        from matplotlib.figure import Figure
    places = np.arange(len(shown))[::-1]
    value, low, high, truth = (100 * np.array([[row.estimate, row.low, row.high, row.truth] for row in shown])).T
    significant = np.array([row.significant for row in shown])
    chart = Figure(figsize=(8, 1.6 + 0.3 * len(shown)), layout="constrained")
    ax = chart.subplots()
    for label, color, which in (("estimate", _BLUE, significant), ("may be chance", _PALE, ~significant)):
        if which.any():
            ax.barh(places[which], value[which], height=0.62, color=color, label=label)
    ax.hlines(places, low, high, color=_INK, linewidth=1.4, label="95% interval")
    ax.scatter(truth, places, marker="D", s=30, color=_ORANGE, edgecolor="white", zorder=3, label="truth")
    ax.axvline(100 * threshold, color=_GREY, linestyle=":", label="what chance may reach")
    ax.axvline(0, color=_INK, linewidth=0.8)
    ax.set_yticks(places, [_label(name) for name in names])
    ax.set_xlabel("percent of people")
    ax.set_title(title)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(left=False)
    chart.legend(loc="outside lower center", ncols=5, frameon=False, fontsize="small")  # where no bar is
    return chart


def _label(name: str) -> str:
    """A tick's text: of bearable length, and not read as a formula."""
    short = name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..."
    return short.replace("$", r"\$")
