"""Figure 3.4: how many values are significantly above the noise, on real data."""

from __future__ import annotations

from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.clicks import EPSILONS, METHODS, OTHER_DATA, ItemCounts, Key, measure
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_methods, finish, look

PRINTED = {"RAP(8)": 75.0, "RAP(16)": 75.0, "BLH": 36.0, "OLH": 200.0}  # at eps = 4; OLH "nearly"


def _positives(items: ItemCounts) -> tuple[int, int]:
    """The number of true positives, and the number of values identified in all."""
    identified = items.counts > items.threshold
    return int((identified & (items.truth > items.threshold)).sum()), int(identified.sum())


@reproduction(
    "dissertation-figure-3.4",
    title="Number of true positives by the significance threshold, varying eps",
    repeats=1,
    needs=("retail",),
)
def figure_3_4(context: Context) -> Reproduced:
    """Values estimated above the threshold of Eq 3.13 at alpha = 0.05, and those truly above it."""
    positives = measure(context, EPSILONS, _positives)
    figure, (panel,) = canvas(width=6, height=4.4)
    draw_methods(panel, EPSILONS, {method: [positives[method, e][:, 0] for e in EPSILONS] for method in METHODS})
    for method in METHODS:
        identified = [positives[method, epsilon][:, 1].mean() for epsilon in EPSILONS]
        panel.plot(EPSILONS, identified, color=look(method)["color"], linestyle="--", linewidth=1)
    panel.plot([], [], color="#555555", linestyle="--", linewidth=1, label="identified, true or not")
    finish(panel, "$\\epsilon$", "true positives", "significance threshold, retail baskets", log="")
    panel.legend(frameon=False)
    cells = []
    for (method, epsilon), rows in positives.items():
        true, identified = rows.mean(axis=0)
        note = f"{identified:g} identified; runs averaged: {context.repeats} (the paper: 10); {OTHER_DATA}"
        paper = PRINTED[method] if epsilon == 4.0 else None
        cells.append(Cell(f"eps = {epsilon:g}", f"{method}, true positives", paper, float(true), note))
    return cells + judged(_claims, positives), figure


def _claims(positives: RunScores[Key]) -> list[Claim]:
    mean = {method: positives[method, 4.0].mean(axis=0) for method in METHODS}
    claims = []
    for other in ("BLH", "RAP(16)"):
        more, paper = ratio(mean["OLH"][0], mean[other][0]), round(PRINTED["OLH"] / PRINTED[other], 1)
        statement = f"eps = 4: true positives, OLH to {other}"
        claims.append(Claim(statement, more, paper=paper, above=1, note=OTHER_DATA))
    true, identified = mean["OLH"]
    rest = ", ".join(f"{m} {mean[m][1] - mean[m][0]:g} of {mean[m][1]:g}" for m in METHODS if m != "OLH")
    statement = "eps = 4: false positives as a part of what OLH identifies"
    wrong = ratio(identified - true, identified)
    return [*claims, Claim(statement, wrong, paper="very few", below=0.2, note=f"{rest}; {OTHER_DATA}")]
