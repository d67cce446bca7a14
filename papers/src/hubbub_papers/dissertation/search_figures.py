"""Cells and lines of chapter 4's figures: the scores of searches, by setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hubbub_papers.dissertation.heavy_data import OTHER_DATA
from hubbub_papers.dissertation.heavy_methods import DRAWN, SearchSetting
from hubbub_papers.harness import Cell, Context, RunScores
from hubbub_papers.plots import draw_methods
from hubbub_papers.result import joined

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Runs = RunScores[SearchSetting]


def score_cells(context: Context, runs: Runs, scores: Sequence[tuple[str, int]]) -> list[Cell]:
    """The mean and deviation of some scores, by name and column, in each setting."""
    cells = []
    for setting, rows in runs.items():
        how = "its own sketch" if "TreeHist" in setting.method else DRAWN
        for name, column in scores:
            mean, deviation = mean_and_deviation(rows[:, column])
            note = joined(f"sd {deviation:.2g}", f"runs averaged: {context.repeats}", how, OTHER_DATA[setting.data])
            cells.append(Cell(str(setting), f"{setting.method}, {name}", None, mean, note))
    return cells


def mean_and_deviation(scores: NDArray[np.float64]) -> tuple[float, float]:
    """The mean and the standard deviation over the runs whose score is a number.

    Example:
        >>> mean_and_deviation(np.array([1.0, np.nan, 3.0]))
        (2.0, 1.0)
    """
    known = scores[np.isfinite(scores)]
    return (float(known.mean()), float(known.std())) if known.size else (float("nan"), float("nan"))


def draw_settings(panel: Axes, runs: Runs, along: str, column: int) -> None:
    """A line a method of one score, along one field of the settings; runs without a number are left out."""
    for method in dict.fromkeys(setting.method for setting in runs):
        points = [setting for setting in runs if setting.method == method]
        scores = [runs[point][:, column] for point in points]
        known = [score[np.isfinite(score)] for score in scores]
        draw_methods(panel, [getattr(point, along) for point in points], {method: known})
