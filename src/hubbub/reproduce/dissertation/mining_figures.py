"""What the figures on frequent items and itemsets look like, and the cells beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hubbub.reproduce.dissertation.mining import (
    EPSILONS,
    ERROR,
    FIXED_EPSILON,
    FIXED_K,
    HITS,
    KS,
    NCR,
    Floats,
    KnownSets,
    MiningRuns,
    MiningSetting,
)
from hubbub.reproduce.harness import Cell, Context
from hubbub.reproduce.plots import canvas, draw_runs, finish, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WORDS = {HITS: "found", NCR: "NCR", ERROR: "Var"}


def known(scores: Floats) -> Floats:
    """The scores of those runs that have one.

    Example:
        >>> known(np.array([2.0, np.nan])).tolist()
        [2.0]
    """
    return np.asarray(scores[~np.isnan(scores)])


def mean_score(runs: MiningRuns, people: str, method: str, epsilon: float, k: int, column: int) -> float:
    """The mean over the runs that have the score; not a number where none has.

    Example:
        >>> runs = {MiningSetting("all", "SVIM", 2.0, 64): np.array([[8.0, 0.2, 1e6], [9.0, 0.3, np.nan]])}
        >>> mean_score(runs, "all", "SVIM", 2.0, 64, HITS), mean_score(runs, "all", "SVIM", 2.0, 64, ERROR)
        (8.5, 1000000.0)
    """
    scores = known(runs[MiningSetting(people, method, epsilon, k)][:, column])
    return float(scores.mean()) if scores.size else float("nan")


def cells(context: Context, everyone: Sequence[KnownSets], runs: MiningRuns, columns: Sequence[int]) -> list[Cell]:
    """The mean and deviation of each setting; no error of what was never found."""
    notes = {people.name: people.note for people in everyone}
    made = []
    for setting, rows in runs.items():
        for column in columns:
            scores = known(rows[:, column])
            if scores.size:
                note = f"{context.repeats} runs (the paper: 10), deviation {scores.std():.3g}"
                if column == ERROR:  # a single length that passes for significant by chance multiplies all of a run
                    note += f", median {np.median(scores):.3g}"
                if scores.size < len(rows):
                    note += f"; {len(rows) - scores.size} of them found none"
                row = f"{setting.people}, k = {setting.k}, eps = {setting.epsilon:g}"
                heading = f"{setting.method}: {WORDS[column]}"
                made.append(Cell(row, heading, None, float(scores.mean()), f"{note}; {notes[setting.people]}"))
    return made


def draw(everyone: Sequence[KnownSets], runs: MiningRuns, columns: Sequence[int]) -> Figure:
    """A row of two panels for each people and score: over epsilon, and over k."""
    figure, panels = canvas(len(everyone) * len(columns), 2)
    places = iter(panels)
    for people in everyone:
        for column in columns:
            over_epsilon = [(epsilon, (epsilon, FIXED_K)) for epsilon in EPSILONS]
            over_k = [(float(k), (FIXED_EPSILON, k)) for k in KS]
            _draw(next(places), people.name, runs, column, over_epsilon, ("$\\epsilon$", f"k = {FIXED_K}", ""))
            _draw(next(places), people.name, runs, column, over_k, ("k", f"eps = {FIXED_EPSILON:g}", "x"))
    legend_below(figure, panels, columns=3)
    return figure


def _draw(
    panel: Axes,
    people: str,
    runs: MiningRuns,
    column: int,
    axis: Sequence[tuple[float, tuple[float, int]]],
    words: tuple[str, str, str],
) -> None:
    """A line a method; a point where no run has the score is left out."""
    drawn = 0
    for method in dict.fromkeys(setting.method for setting in runs):
        rows = [(x, known(runs[MiningSetting(people, method, *pair)][:, column])) for x, pair in axis]
        seen = [(x, scores) for x, scores in rows if scores.size]
        draw_runs(panel, [x for x, _ in seen], [scores for _, scores in seen], method)
        drawn += len(seen)
    label, fixed, log = words
    finish(panel, label, WORDS[column], f"{people}, {fixed}", log=log + ("y" if column == ERROR and drawn else ""))
    if "x" in log:
        panel.set_xticks([x for x, _ in axis], labels=[f"{x:g}" for x, _ in axis])
        panel.set_xticks([], minor=True)
