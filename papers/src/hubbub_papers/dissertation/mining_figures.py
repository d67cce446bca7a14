"""Cells and panels of chapter 5's figures on frequent items and itemsets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from hubbub_papers.dissertation.mining import (
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
from hubbub_papers.harness import Cell, Context
from hubbub_papers.plots import canvas, draw_methods, finish, legend_below, mark_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORDS = {HITS: "found", NCR: "NCR", ERROR: "Var"}


def known(scores: Floats) -> Floats:
    """The scores that are numbers."""
    return np.asarray(scores[~np.isnan(scores)])


def mean_score(runs: MiningRuns, people: str, method: str, epsilon: float, k: int, column: int) -> float:
    """The mean over the runs whose score is a number; NaN if there is none."""
    scores = known(runs[MiningSetting(people, method, epsilon, k)][:, column])
    return float(scores.mean()) if scores.size else float("nan")


def cells(context: Context, everyone: Sequence[KnownSets], runs: MiningRuns, columns: Sequence[int]) -> list[Cell]:
    """The mean and deviation of each setting. A setting in which no run found a top value has no error."""
    notes = {people.name: people.note for people in everyone}
    mean_cells = []
    for setting, rows in runs.items():
        for column in columns:
            scores = known(rows[:, column])
            if scores.size:
                note = f"{context.repeats} runs (the paper: 10), deviation {scores.std():.3g}"
                if column == ERROR:  # a length that is significant by chance multiplies all errors of its run
                    note += f", median {np.median(scores):.3g}"
                if scores.size < len(rows):
                    note += f"; {len(rows) - scores.size} of them found none"
                row = f"{setting.people}, k = {setting.k}, eps = {setting.epsilon:g}"
                heading = f"{setting.method}: {WORDS[column]}"
                mean_cells.append(Cell(row, heading, None, float(scores.mean()), f"{note}; {notes[setting.people]}"))
    return mean_cells


def draw(everyone: Sequence[KnownSets], runs: MiningRuns, columns: Sequence[int]) -> Figure:
    """A row of two panels for each people and score: over epsilon, and over k."""
    figure, panels = canvas(len(everyone) * len(columns), 2)
    methods = list(dict.fromkeys(setting.method for setting in runs))
    for row, (people, column) in enumerate(product(everyone, columns)):
        by_epsilon, by_k = (
            {
                method: [known(runs[MiningSetting(people.name, method, *pair)][:, column]) for pair in pairs]
                for method in methods
            }
            for pairs in ([(epsilon, FIXED_K) for epsilon in EPSILONS], [(FIXED_EPSILON, k) for k in KS])
        )
        left, right = panels[2 * row : 2 * row + 2]
        draw_methods(left, EPSILONS, by_epsilon)
        draw_methods(right, KS, by_k)
        for panel, axis, fixed, log in (
            (left, "$\\epsilon$", f"k = {FIXED_K}", ""),
            (right, "k", f"eps = {FIXED_EPSILON:g}", "x"),
        ):
            some_error = column == ERROR and bool(panel.get_lines())
            finish(panel, axis, WORDS[column], f"{people.name}, {fixed}", log=log + ("y" if some_error else ""))
        mark_values(right, KS)
    legend_below(figure, panels, columns=3)
    return figure
