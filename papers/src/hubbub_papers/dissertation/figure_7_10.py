"""Figure 7.10: HIO and SC over four ordinal and four categorical private dimensions, by the dimensions of a query."""

from __future__ import annotations

import numpy as np

from hubbub_papers.claims import Claim, judged, means, ratio
from hubbub_papers.dissertation.range_people import OTHER_DATA, answers, census_people, random_box
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_lines, finish

KINDS = {"1+0": (0,), "1+1": (0, 5), "2+0": (0, 1), "2+1": (0, 1, 5)}
METHODS = ("HIO", "SC")
QUERIES = 10
Key = tuple[str, str]  # kind of query, method


@reproduction(
    "dissertation-figure-7.10",
    title="Sums where eight dimensions are private: relative error of HIO and SC by query, eps = 5",
    repeats=2,
    needs=("census",),
)
def figure_7_10(context: Context) -> Reproduced:
    """The median relative error of ten random queries of a third of each number that they ask for."""
    people = census_people(context, [625] * 4, words=4)

    def run_once(setting: Key, run: int) -> dict[Key, float]:
        kind, method = setting
        rng = context.rng.child("figure 7.10", kind, run)
        numbers = sum(column < 4 for column in KINDS[kind])
        queries = [random_box(people.dimensions, KINDS[kind], 3.0**-numbers, rng) for _ in range(QUERIES)]
        truth = np.array([max(people.measure[people.within(query)].sum(), 1.0) for query in queries])
        estimates = answers(people, method, 5.0, queries, rng.child(method))
        return {setting: float(np.median(np.abs(estimates - truth) / truth))}

    runs = context.measure([(kind, method) for kind in KINDS for method in METHODS], run_once, " ".join)
    error = means(runs)
    note = f"runs averaged: {context.repeats}, {QUERIES} queries each; {OTHER_DATA}"
    cells = [Cell(kind, f"{method}, relative error", None, mean, note) for (kind, method), mean in error.items()]
    figure, (panel,) = canvas()
    draw_lines(panel, list(KINDS), {method: [error[kind, method] for kind in KINDS] for method in METHODS})
    finish(panel, "dimensions asked for (numbers + words)", "median relative error", "census, $\\epsilon$ = 5")
    panel.legend(frameon=False)
    return cells + judged(_claims, runs), figure


def _claims(runs: RunScores[Key]) -> list[Claim]:
    error = means(runs)
    gain = {kind: ratio(error[kind, "SC"], error[kind, "HIO"]) for kind in KINDS}
    words = "SC performs better"
    return [
        *(Claim(f"{kind}: SC to HIO", gain[kind], words, below=1, note=OTHER_DATA) for kind in ("1+0", "1+1", "2+0")),
        Claim("2+1: SC to HIO", gain["2+1"], "except 2+1", above=1, note=OTHER_DATA),
    ]
