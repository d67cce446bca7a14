"""Figure 8.5: how many more people are needed without post-processing for the error that n people have with it."""

from __future__ import annotations

import numpy as np

from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub_papers.claims import Claim, judged, means
from hubbub_papers.dissertation.postprocessing import (
    KEYS,
    draw_rows,
    estimated,
    full_domain,
    squared_error,
    zipf_population,
)
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction

EPSILON = 1.0
OVER = "mean over n"
SIZES = tuple(200_000 * k for k in range(1, 11))
Setting = tuple[str, int]  # method, n


def people_without(olh: OLH, error: float) -> float:
    """The number of reports that have this mean squared error without post-processing (Eq 3.2, averaged)."""
    return olh.variance(1, 1 / olh.size) / error


@reproduction(
    "dissertation-figure-8.5",
    title="People saved by post-processing: n against n', Zipf data set, eps = 1",
    repeats=10,
)
def figure_8_5(context: Context) -> Reproduced:
    """For each n, the n' whose analytical error is the error measured."""
    olh = OLH(epsilon=EPSILON, domain=1024)
    crowds = {context.size(n, least=1000): zipf_population(context, n) for n in SIZES}

    def run_once(n: int, run: int) -> dict[Setting, float]:
        shares = full_domain(estimated(crowds[n], EPSILON, context.rng.child("figure 8.5", n, run)))
        truth = crowds[n].truth
        return {(method, n): people_without(olh, squared_error(shares[method], truth)) for method in KEYS}

    needed = context.measure(crowds, run_once, "n = {:,}".format)
    rows = {"Zipf": {method: [needed[method, n] for n in crowds] for method in KEYS}}
    figure = draw_rows(list(crowds), rows, labels=("n, with post-processing", "n', without"), log="", width=5)
    note = f"n'; runs averaged: {context.repeats} (the paper: 30)"
    cells = [Cell(f"n = {n:,}", method, None, mean, note) for (method, n), mean in means(needed).items()]
    return cells + judged(_claims, needed), figure


def _claims(needed: RunScores[Setting]) -> list[Claim]:
    """`needed` holds the n' of each method and n, one a run."""
    sizes = sorted({n for _, n in needed})
    gain = {m: float(np.mean([needed[m, n].mean() / n for n in sizes])) for m in KEYS}
    saved = np.mean([1 - n / needed["PowerNS", n].mean() for n in sizes])
    rival = max((m for m in KEYS if m != "PowerNS"), key=lambda m: gain[m])
    claims = [Claim(f"{m}: n' to n", gain[m], paper=1.0, above=0.9, below=1.1, note=OVER) for m in ("Base", "Norm")]
    claims += [
        Claim("Norm-Mul: n' to n", gain["Norm-Mul"], below=1, note=OVER),
        Claim("PowerNS saves this part of the users", saved, paper=0.9, above=0.85, below=0.95, note=OVER),
        Claim("n', PowerNS to the next best", gain["PowerNS"] / gain[rival], above=1, note=f"{rival}; {OVER}"),
    ]
    for a, b in (("Base", "Norm"), ("Base-Pos", "Post-Pos"), ("Norm-Sub", "MLE-Apx")):
        claims.append(Claim(f"n', {b} to {a}", gain[b] / gain[a], paper="about 1", above=0.9, below=1.1, note=OVER))
    return claims
