"""How the figures of LDP-IDS look: a colour a method, dashed lines for budget division, solid ones for population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hubbub_papers.plots import canvas, draw_lines, finish, legend_below, mark_values

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
    """The plotting options of a method's line."""
    budget = method.startswith("LB")
    colour, marker = _COLOURS["SP" if method == "LSP" else method[2:].removeprefix("-")]
    filled = "none" if budget else colour
    style = {"color": colour, "marker": marker, "markerfacecolor": filled, "linestyle": "--" if budget else "-"}
    return {**style, "markersize": 5, "linewidth": 1.3, "label": method}


def panels_of(titles: Sequence[str], *, columns: int = 4) -> tuple[Figure, dict[str, Axes]]:
    """A figure with a panel for each title, at most `columns` side by side.

    Example:
        >>> figure, panels = panels_of(["a", "b", "c"], columns=2)
        >>> list(panels), len(figure.axes)
        (['a', 'b', 'c'], 3)
    """
    rows = -(-len(titles) // columns)
    figure, panels = canvas(rows, min(columns, len(titles)), width=3.7, height=3.1)
    for panel in panels[len(titles) :]:
        panel.remove()
    return figure, dict(zip(titles, panels, strict=False))


def draw(
    panel: Axes,
    xs: Sequence[float],
    heights: Mapping[str, Sequence[float]],
    *,
    x: str,
    y: str,
    title: str,
    log: str = "xy",
) -> None:
    """A line a method, with ticks at the values of x alone; `heights` holds, by method, the height at each x."""
    draw_lines(panel, xs, heights, look)
    finish(panel, x, y, title, log=log)
    mark_values(panel, xs, fontsize=8)


def with_legend(figure: Figure) -> Figure:
    """The figure with one legend below all panels."""
    legend_below(figure, figure.axes, columns=10)
    return figure
