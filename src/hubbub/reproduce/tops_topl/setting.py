"""What the figures of ToPS share: the settings of section 5.1, shrunk if asked, runs and cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.reproduce.harness import Cell, Context
from hubbub.reproduce.plots import canvas, finish, legend_below
from hubbub.reproduce.tops_topl.methods import QueryErrors, height_of
from hubbub.reproduce.tops_topl.streams import HOW, PAPER, ValueStream, made

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0.01, 0.02, 0.05, 0.1)
HOLDOUT = 1 << 16
Key = tuple[str, float, str]  # stream, epsilon, method
Runs = Mapping[Key, NDArray[np.float64]]
_COLOURS = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7", "#808080")
_MARKERS = "os^DvPX*"


def paper_streams(context: Context) -> list[ValueStream]:
    """The four streams of Table 1's shape; scaled down they are shorter."""
    longest = HOLDOUT + (1 << 20)
    return [made(name, context.size(min(PAPER[name].n, longest), least=4000)) for name in PAPER]


def holdout(stream: ValueStream, most: int = HOLDOUT) -> int:
    """m: the paper's, or a fifth of a stream that is shorter than five times that."""
    return min(most, stream.values.size // 5)


def reach_of(stream: ValueStream, m: int) -> int:
    """r = 2^20, or for what is shorter the whole of it, as a power of 16."""
    return int(min(1 << 20, 16 ** height_of(stream.values.size - m)))


def sweep(
    context: Context,
    streams: Sequence[ValueStream],
    methods: Sequence[str],
    run: Callable[[ValueStream, float, str, Random], Sequence[float]],
    epsilons: Sequence[float] = EPSILONS,
) -> dict[Key, NDArray[np.float64]]:
    """Each method on each stream at each epsilon, as often as asked: a row of numbers a run.

    In one run all methods have the same randomness: the same queries, and as far as they draw alike the same noise.
    """
    plan = [(s, e, m, k) for s in streams for e in epsilons for m in methods for k in range(context.repeats)]
    found: dict[Key, list[Sequence[float]]] = {}
    for stream, epsilon, method, turn in context.track(plan, lambda p: f"{p[0].name}, eps = {p[1]:g}, {p[2]}"):
        rng = context.rng.child("tops", stream.name, str(epsilon), turn)
        found.setdefault((stream.name, epsilon, method), []).append(run(stream, epsilon, method, rng))
    return {key: np.array(rows) for key, rows in found.items()}


def cells_of(context: Context, runs: Runs, what: str, *, place: int = 0, note: str = HOW) -> list[Cell]:
    """A cell for each setting: the mean over the runs. The paper prints none of them."""
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
    """By how many powers of ten one method's error is below another's, for each stream and epsilon."""
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
        for method in methods:
            means = [runs[stream.name, epsilon, method][:, place].mean() for epsilon in EPSILONS]
            panel.plot(EPSILONS, means, **look(methods, method))
        finish(panel, "$\\epsilon$", error.upper(), stream.name)
    legend_below(figure, panels, columns=6)
    return figure


def look(methods: Sequence[str], method: str) -> dict[str, Any]:
    """The plotting options of a method's line."""
    place = list(methods).index(method)
    return {"color": _COLOURS[place], "marker": _MARKERS[place], "markersize": 5, "linewidth": 1.3, "label": method}
