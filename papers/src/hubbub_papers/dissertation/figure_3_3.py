"""Figure 3.3: the error of the most frequent values, on real data."""

from __future__ import annotations

import numpy as np

from hubbub_papers.claims import Claim, judged, means, ratio
from hubbub_papers.dissertation.clicks import EPSILONS, METHODS, OTHER_DATA, ItemCounts, Key, measure
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_methods, finish

FREQUENT = 30


def _squared_error(items: ItemCounts) -> float:
    top = np.argsort(-items.truth, kind="stable")[:FREQUENT]
    return float(((items.counts - items.truth)[top] ** 2).mean())


@reproduction(
    "dissertation-figure-3.3",
    title="Average squared error on the 30 most frequent values, varying eps",
    repeats=1,
    needs=("retail",),
)
def figure_3_3(context: Context) -> Reproduced:
    """The squared error of the counts of the 30 most frequent items."""
    errors = measure(context, EPSILONS, _squared_error)
    figure, (panel,) = canvas(width=6, height=4.4)
    draw_methods(panel, EPSILONS, {method: [errors[method, epsilon] for epsilon in EPSILONS] for method in METHODS})
    finish(panel, "$\\epsilon$", "mean squared error of c(i)", f"{FREQUENT} most frequent items, retail baskets")
    panel.legend(frameon=False)
    note = f"runs averaged: {context.repeats} (the paper: 10); {OTHER_DATA}"
    cells = [Cell(f"eps = {e:g}", method, None, mean, note) for (method, e), mean in means(errors).items()]
    return cells + judged(_claims, errors), figure


def _claims(errors: RunScores[Key]) -> list[Claim]:
    mean = means(errors)
    others = [method for method in METHODS if method != "OLH"]
    worst = max(ratio(mean["OLH", e], mean[m, e]) for e in EPSILONS if e > 1 for m in others)
    fall = {m: ratio(mean[m, 1.0], mean[m, 4.0]) for m in METHODS}
    faster = ratio(fall["OLH"], max(fall[m] for m in others))
    claims = [
        Claim("eps above 1: OLH's error to any other's, the largest", worst, below=1, note=OTHER_DATA),
        Claim("fall of the error from eps 1 to eps 4, OLH to the next", faster, above=1, note=OTHER_DATA),
    ]
    for method, equations in (("RAP(8)", 8 * 128), ("RAP(16)", 16 * 128)):
        gain, gain_of_olh = (ratio(mean[name, 3.0], mean[name, 5.0]) for name in (method, "OLH"))
        note = f"OLH's {gain_of_olh:.3g}; {equations:,} equations for 16,470 candidates; {OTHER_DATA}"
        statement = f"{method} gains nothing from a larger eps: error at eps 3 to eps 5"
        claims.append(Claim(statement, gain, paper="about 1", below=2, note=note))
    return claims
