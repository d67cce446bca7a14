"""Panels, lines and legends of the figures; a method has the same colour and marker in every figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import needs

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart, and three of our own.
_BLACK, _ORANGE, _SKY, _GREEN = "#000000", "#e69f00", "#56b4e9", "#009e73"
_YELLOW, _BLUE, _RED, _PURPLE = "#b8a800", "#0072b2", "#d55e00", "#cc79a7"
_GREY, _BROWN, _INDIGO = "#808080", "#7f4f24", "#332288"

_LOOKS: dict[str, tuple[str, str]] = {
    "DE": (_BLACK, "o"),
    "SHE": (_ORANGE, "s"),
    "THE": (_SKY, "^"),
    "SUE": (_GREEN, "D"),
    "OUE": (_BLUE, "v"),
    "BLH": (_RED, "P"),
    "OLH": (_PURPLE, "X"),
    "RAP(8)": (_ORANGE, "s"),
    "RAP(16)": (_GREEN, "D"),
    "Base": (_BLACK, "o"),
    "Base-Pos": (_ORANGE, "s"),
    "Post-Pos": (_SKY, "^"),
    "Norm": (_GREY, "D"),
    "Norm-Mul": (_RED, "P"),
    "Norm-Sub": (_BLUE, "v"),
    "MLE-Apx": (_YELLOW, "<"),
    "Base-Cut": (_INDIGO, "h"),
    "Norm-Cut": (_GREEN, ">"),
    "Power": (_PURPLE, "X"),
    "PowerNS": (_BROWN, "*"),
    "PEM": (_BLUE, "o"),
    "PEM1": (_ORANGE, "s"),
    "PEM1, split": (_YELLOW, "s"),
    "HASH": (_GREEN, "^"),
    "HASH, divided": (_SKY, "^"),
    "SPM": (_RED, "D"),
    "SPM, divided": (_PURPLE, "D"),
    "PrivTrie": (_GREY, "P"),
    "PrivTrie, 4 sd": (_BROWN, "P"),
    "TreeHist": (_BLACK, "x"),
    "TreeHist, divided": (_INDIGO, "x"),
    "LDPMiner as published": (_GREY, "<"),
    "(BLH, L), (SUE, 2k)": (_BLACK, "o"),
    "(OLH, L), (OLH, 2k)": (_ORANGE, "s"),
    "(OLH, 1), (OLH, 2k)": (_SKY, "^"),
    "(OLH, 1), (Adap, 2k)": (_GREEN, "D"),
    "(OLH, 1), (Adap, L)": (_PURPLE, "P"),
    "(OLH, 1), (Adap, L)(c)": (_BLUE, "v"),
    "SVIM as deployed": (_RED, "X"),
    "SVSM as deployed": (_RED, "X"),
    "SVSM": (_BLUE, "v"),
    "SVSM with LDPMiner": (_BLACK, "o"),
    "SVSM with LDPMiner by OLH": (_ORANGE, "s"),
    "CALM": (_BLUE, "o"),
    "CALM, ours": (_BROWN, "*"),
    "FC": (_ORANGE, "s"),
    "AM": (_GREEN, "^"),
    "FT": (_RED, "D"),
    "EM": (_PURPLE, "X"),
    "BE": (_SKY, "v"),
    "Uniform": (_GREY, "P"),
    "NoNoise": (_BLACK, "x"),
    "Majority": (_GREY, "P"),
    "centralised": (_BLACK, "x"),
    "MG": (_GREY, "s"),
    "HI": (_ORANGE, "^"),
    "HIO": (_BLUE, "o"),
    "HIO, consistent": (_GREEN, "D"),
    "SC": (_RED, "P"),
    "SH": (_BLACK, "o"),
    "AUE": (_ORANGE, "s"),
    "RAP": (_GREEN, "D"),
    "RAP_R": (_YELLOW, "<"),
    "SOLH": (_BLUE, "v"),
    "Had": (_RED, "P"),
    "Lap": (_SKY, "^"),
    "Guess": (_GREY, "h"),
}


# Methods whose line is nearly that of another one drawn later: a larger, hollow marker stays visible around it.
_BENEATH = {"OUE", "Base", "Base-Pos", "Norm-Sub", "Power", "(OLH, 1), (Adap, L)"}


def look(method: str) -> dict[str, Any]:
    """The plotting options of a method's line."""
    colour, marker = _LOOKS[method]
    style = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.3, "label": method}
    return {**style, "markersize": 9, "markerfacecolor": "none"} if method in _BENEATH else style


def canvas(rows: int = 1, columns: int = 1, *, width: float = 4.6, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """A figure of that many panels, and the panels row by row."""
    with needs("analytics"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def draw_runs(panel: Axes, xs: Sequence[float], runs: Sequence[NDArray[Any]], method: str, **options: Any) -> None:
    """The mean of the runs at each x as the method's line, and one standard deviation to either side as pale bars."""
    means, deviations = (np.array([statistic(row) for row in runs]) for statistic in (np.mean, np.std))
    panel.plot(xs, means, **{**look(method), **options})
    colour = look(method)["color"]
    panel.vlines(xs, means - deviations, means + deviations, colors=colour, alpha=0.35, linewidth=1.6, zorder=1)


def draw_methods(panel: Axes, xs: Sequence[float], runs: Mapping[str, Sequence[NDArray[Any] | None]]) -> None:
    """A line a method with `draw_runs`; `runs` holds, by method, the runs at each x. An x without runs is left out."""
    for method, rows in runs.items():
        points = [(x, row) for x, row in zip(xs, rows, strict=True) if row is not None and row.size]
        if points:
            draw_runs(panel, [x for x, _ in points], [row for _, row in points], method)


def draw_lines(
    panel: Axes,
    xs: Sequence[Any],
    heights: Mapping[str, Sequence[float]],
    look_of: Callable[[str], Mapping[str, Any]] = look,
) -> None:
    """A line a method; `heights` holds, by method, the height at each x."""
    for method, line in heights.items():
        panel.plot(xs, line, **look_of(method))


def mark_values(panel: Axes, xs: Sequence[float], **options: Any) -> None:
    """Put ticks at these values and nowhere else: the usual labels of a short logarithmic axis overlap."""
    panel.set_xticks(list(xs), [f"{x:,g}" for x in xs], **options)
    panel.set_xticks([], minor=True)


def finish(panel: Axes, x: str, y: str, title: str = "", *, log: str = "y") -> None:
    """Name the axes, and make those in `log` logarithmic."""
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    panel.set_title(title, fontsize=10)
    if "x" in log:
        panel.set_xscale("log")
    if "y" in log:
        panel.set_yscale("log")
        # A bar that reaches down to 0 has no end on such an axis: the lines alone say how far it goes.
        heights = [float(y) for line in panel.get_lines() for y in np.asarray(line.get_ydata()) if float(y) > 0]
        panel.set_ylim(min(heights) / 2, max(heights) * 2)
    panel.grid(True, which="major", color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)


def legend_below(figure: Figure, panels: list[Axes], *, columns: int = 7) -> None:
    """One legend under all panels, each name once."""
    entries: dict[str, Artist] = {}
    for panel in panels:
        handles, labels = panel.get_legend_handles_labels()
        entries.update(zip(map(str, labels), handles, strict=True))
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns, frameon=False)
