"""Figure 7.10: HIO and SC where four numbers and four words are private, by the dimensions that queries ask for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hubbub.reproduce.claims import Claim, judged, ratio
from hubbub.reproduce.dissertation.range_people import OTHER_DATA, answers, census_people, random_box
from hubbub.reproduce.harness import Cell, Context, Reproduced, reproduction
from hubbub.reproduce.plots import canvas, finish, look

KINDS = {"1+0": (0,), "1+1": (0, 5), "2+0": (0, 1), "2+1": (0, 1, 5)}
METHODS = ("HIO", "SC")
QUERIES = 10
Runs = Mapping[tuple[str, str], NDArray[np.float64]]


@reproduction(
    "dissertation-figure-7.10",
    title="Sums where eight dimensions are private: relative error of HIO and SC by query, eps = 5",
    repeats=2,
    needs=("census",),
)
def figure_7_10(context: Context) -> Reproduced:
    """The median relative error of ten random queries of a third of each number that they ask for."""
    people = census_people(context, [625] * 4, words=4)
    runs: dict[tuple[str, str], NDArray[np.float64]] = {}
    steps = [(kind, method) for kind in KINDS for method in METHODS]
    for kind, method in context.track(steps, " ".join):
        errors = []
        for run in range(context.repeats):
            rng = context.rng.child("figure 7.10", kind, run)
            numbers = sum(column < 4 for column in KINDS[kind])
            drawn = [random_box(people.dimensions, KINDS[kind], 3.0**-numbers, rng) for _ in range(QUERIES)]
            truth = np.array([max(people.measure[people.within(query)].sum(), 1.0) for query in drawn])
            said = answers(people, method, 5.0, drawn, rng.child(method))
            errors.append(float(np.median(np.abs(said - truth) / truth)))
        runs[kind, method] = np.array(errors)
    note = f"runs averaged: {context.repeats}, {QUERIES} queries each; {OTHER_DATA}"
    cells = [
        Cell(kind, f"{method}, relative error", None, float(errors.mean()), note)
        for (kind, method), errors in runs.items()
    ]
    figure, (panel,) = canvas()
    for method in METHODS:
        panel.plot(list(KINDS), [float(runs[kind, method].mean()) for kind in KINDS], **look(method))
    finish(panel, "dimensions asked for (numbers + words)", "median relative error", "census, $\\epsilon$ = 5")
    panel.legend(frameon=False)
    return cells + judged(_claims, runs), figure


def _claims(runs: Runs) -> list[Claim]:
    gain = {kind: ratio(float(runs[kind, "SC"].mean()), float(runs[kind, "HIO"].mean())) for kind in KINDS}
    words = "SC performs better"
    return [
        *(Claim(f"{kind}: SC to HIO", gain[kind], words, below=1, note=OTHER_DATA) for kind in ("1+0", "1+1", "2+0")),
        Claim("2+1: SC to HIO", gain["2+1"], "except 2+1", above=1, note=OTHER_DATA),
    ]
