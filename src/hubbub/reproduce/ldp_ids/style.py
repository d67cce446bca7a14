"""How the figures of LDP-IDS look: a colour for the way to decide, dashes for budget and lines for population."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.reproduce.plots import canvas, finish, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours.
_COLOURS = {
    "U": ("#000000", "o"),
    "SP": ("#e69f00", "s"),
    "D": ("#0072b2", "^"),
    "A": ("#d55e00", "D"),
    "DSAT": ("#56b4e9", "v"),
    "RescueDP": ("#009e73", "P"),
    "FAST": ("#cc79a7", "X"),
    "PeGaSus": ("#7f4f24", "*"),
}


def look(method: str) -> dict[str, Any]:
    """The plotting options of a method's line.

    Example:
        >>> look("LBA")["color"] == look("LPA")["color"], look("LBA")["linestyle"], look("LP-DSAT")["linestyle"]
        (True, '--', '-')
    """
    budget = method.startswith("LB")
    colour, marker = _COLOURS["SP" if method == "LSP" else method[2:].removeprefix("-")]
    filled = "none" if budget else colour
    style = {"color": colour, "marker": marker, "markerfacecolor": filled, "linestyle": "--" if budget else "-"}
    return {**style, "markersize": 5, "linewidth": 1.3, "label": method}


def panels_of(titles: Sequence[str], *, columns: int = 4) -> tuple[Figure, dict[str, Axes]]:
    """A figure with a panel for each title, so many side by side; empty places are taken out.

    Example:
        >>> figure, panels = panels_of(["a", "b", "c"], columns=2)
        >>> list(panels), len(figure.axes)
        (['a', 'b', 'c'], 3)
    """
    rows = -(-len(titles) // columns)
    figure, panels = canvas(rows, min(columns, len(titles)), width=3.7, height=3.1)
    for empty in panels[len(titles) :]:
        empty.remove()
    return figure, dict(zip(titles, panels, strict=False))


def draw(
    panel: Axes,
    methods: Sequence[str],
    xs: Sequence[float],
    ys: Callable[[str, float], float],
    *,
    x: str,
    y: str,
    title: str,
    log: str = "xy",
) -> None:
    """A line for each method over the values of x, which are the axis's only marks."""
    for method in methods:
        panel.plot(xs, [ys(method, value) for value in xs], **look(method))
    finish(panel, x, y, title, log=log)
    panel.set_xticks(xs, [f"{value:,g}" for value in xs], fontsize=8)
    panel.set_xticks([], minor=True)


def finished(figure: Figure) -> Figure:
    """The figure with one legend below all panels."""
    legend_below(figure, figure.axes, columns=10)
    return figure
