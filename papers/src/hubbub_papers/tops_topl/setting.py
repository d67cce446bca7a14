"""What the figures of ToPS share: the settings of section 5.1, the sweep over them, cells and panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.random.source import Random
from hubbub_papers.harness import Cell, Context, RunScores
from hubbub_papers.plots import canvas, draw_lines, finish, legend_below
from hubbub_papers.tops_topl.methods import QueryErrors, height_of
from hubbub_papers.tops_topl.streams import HOW, PAPER, ValueStream, made

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0.01, 0.02, 0.05, 0.1)
HOLDOUT = 1 << 16
Key = tuple[str, float, str]  # stream, epsilon, method
Runs = RunScores[Key]
_COLOURS = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7", "#808080")
_MARKERS = "os^DvPX*"


def paper_streams(context: Context) -> list[ValueStream]:
    """The four streams of Table 1's shape; scaled down they are shorter."""
    longest = HOLDOUT + (1 << 20)
    return [made(name, context.size(min(PAPER[name].n, longest), least=4000)) for name in PAPER]


def dns_stream(context: Context) -> ValueStream:
    """The stream of Table 1's DNS."""
    return next(stream for stream in paper_streams(context) if stream.name == "DNS")


def holdout(stream: ValueStream, most: int = HOLDOUT) -> int:
    """m: the paper's, or a fifth of a stream that is shorter than five times the paper's m."""
    return min(most, stream.values.size // 5)


def reach_of(stream: ValueStream, m: int) -> int:
    """r: 2^20, or for a shorter stream the power of 16 that covers it."""
    return int(min(1 << 20, 16 ** height_of(stream.values.size - m)))


def sweep(
    context: Context,
    streams: Sequence[ValueStream],
    methods: Sequence[str],
    run: Callable[[ValueStream, float, str, Random], Sequence[float]],
    epsilons: Sequence[float] = EPSILONS,
) -> dict[Key, NDArray[np.float64]]:
    """Run each method on each stream at each epsilon; return the scores, one row a run.

    In one run all methods have the same randomness: the same queries, and the same noise as far as they draw alike.
    """

    def run_once(setting: tuple[ValueStream, float, str], number: int) -> dict[Key, Sequence[float]]:
        stream, epsilon, method = setting
        rng = context.rng.child("tops", stream.name, str(epsilon), number)
        return {(stream.name, epsilon, method): run(stream, epsilon, method, rng)}

    settings = [(stream, epsilon, method) for stream in streams for epsilon in epsilons for method in methods]
    return context.measure(settings, run_once, "{0[0].name}, eps = {0[1]:g}, {0[2]}".format)


def cells_of(context: Context, runs: Runs, what: str, *, place: int = 0, note: str = HOW) -> list[Cell]:
    """A cell for each setting: the mean over the runs of one column. The paper prints none of them."""
    return [
        Cell(
            f"{name}, eps = {epsilon:g}: {what}",
            method,
            None,
            float(rows[:, place].mean()),
            f"{note}; runs: {len(rows)}",
        )
        for (name, epsilon, method), rows in runs.items()
    ]


def orders(runs: Runs, worse: str, better: str, place: int = 0) -> list[float]:
    """The powers of ten by which one method's error is below another's, for each stream and epsilon."""
    keys = [(name, epsilon) for name, epsilon, method in runs if method == better]
    return [
        float(np.log10(runs[name, epsilon, worse][:, place].mean() / runs[name, epsilon, better][:, place].mean()))
        for name, epsilon in keys
    ]


def panels_of(
    streams: Sequence[ValueStream], methods: Sequence[str], runs: Runs, errors: Sequence[str] = ("mse",)
) -> Figure:
    """A panel for each error and stream: the mean over the runs of every method, by epsilon."""
    figure, panels = canvas(len(errors), len(streams), width=3.6, height=3.6 if len(errors) == 1 else 3.0)
    for panel, (error, stream) in zip(panels, product(errors, streams), strict=True):
        place = QueryErrors._fields.index(error)
        means = {m: [runs[stream.name, e, m][:, place].mean() for e in EPSILONS] for m in methods}
        draw_lines(panel, EPSILONS, means, looks(methods).__getitem__)
        finish(panel, "$\\epsilon$", error.upper(), stream.name)
    legend_below(figure, panels, columns=6)
    return figure


def looks(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The plotting options of each method's line."""
    styles = zip(methods, _COLOURS, _MARKERS, strict=False)
    return {
        method: {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.3, "label": method}
        for method, colour, marker in styles
    }
