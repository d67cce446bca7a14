"""Figure 3.5: true and false positives as the threshold moves, on real data."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.clicks import METHODS, OTHER_DATA, ItemCounts, events, measure
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, finish, legend_below, look

EPSILON = 4.0
KOSARAK = 8_000_000  # "around 8 million click events"
KINDS = ("true positives", "false positives")


@reproduction(
    "dissertation-figure-3.5",
    title="True and false positives against the threshold, eps = 4",
    repeats=3,
    needs=("retail",),
)
def figure_3_5(context: Context) -> Reproduced:
    """The values estimated above a threshold: how many truly are above it, and how many are not."""
    # The paper reads the figure at 5,000. On our events the same number of standard deviations is less.
    printed = 5000 * math.sqrt(events(context).size / KOSARAK)
    thresholds = printed * np.geomspace(1 / 8, 8, 25)
    middle = thresholds.size // 2  # the printed one

    def both(items: ItemCounts) -> NDArray[np.int64]:
        above = items.counts[None, :] > thresholds[:, None]
        truly = items.truth[None, :] > thresholds[:, None]
        return np.array([(above & truly).sum(axis=1), (above & ~truly).sum(axis=1)])

    measured = measure(context, (EPSILON,), both)
    figure, panels = canvas(1, 2)
    for row, (panel, kind) in enumerate(zip(panels, KINDS, strict=True)):
        for method in METHODS:
            panel.plot(thresholds, measured[method, EPSILON].mean(axis=0)[row], **look(method))
        finish(panel, "threshold (events)", kind, "$\\epsilon$ = 4, retail baskets", log="x")
        panel.axvline(printed, color="#999999", linewidth=0.8, linestyle=":")
        panel.set_yscale("symlog", linthresh=1)
        panel.set_ylim(bottom=0)
    legend_below(figure, panels, columns=4)
    where = f"T = {printed:.0f}, as many standard deviations as 5,000 on 8 million events; {OTHER_DATA}"
    runs = f"runs averaged: {context.repeats} (the paper: 10); {OTHER_DATA}"
    words = {("OLH", 1): "tens", ("BLH", 1): "thousands"}
    cells = [
        Cell(
            f"T = {threshold:.0f}",
            f"{method}, {kind}",
            words.get((method, row)) if index == middle else None,
            float(measured[method, EPSILON].mean(axis=0)[row, index]),
            where if index == middle else runs,
        )
        for row, kind in enumerate(KINDS)
        for method in METHODS
        for index, threshold in enumerate(thresholds)
    ]
    at_printed = {method: rows[:, :, middle] for (method, _), rows in measured.items()}
    return cells + judged(lambda runs: _claims(runs, where), at_printed), figure


def _claims(measured: RunScores[str], where: str) -> list[Claim]:
    true, false = ({method: float(rows[:, row].mean()) for method, rows in measured.items()} for row in (0, 1))
    more, alike = ratio(false["BLH"], false["OLH"]), ratio(true["OLH"], true["BLH"])
    worse = ratio(true["RAP(16)"], true["OLH"])
    return [
        Claim("false positives, BLH to OLH", more, paper="thousands to tens", above=10, note=where),
        Claim("true positives, OLH to BLH", alike, paper="about 1", above=0.8, below=1.25, note=where),
        Claim("true positives, RAP(16) to OLH", worse, paper="slightly below 1", below=1, note=where),
    ]
