"""Figure 8.5: how many more people would do without post-processing what n do with it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.reproduce.claims import Claim, judged
from hubbub.reproduce.dissertation.postprocessing import KEYS, draw_rows, estimated, full_domain, zipf_population
from hubbub.reproduce.harness import Cell, Context, Reproduced, reproduction
from hubbub.reproduce.plots import canvas

EPSILON = 1.0
OVER = "mean over n"
SIZES = tuple(200_000 * k for k in range(1, 11))


def people_without(olh: OLH, error: float) -> float:
    """How many reports, not post-processed, have this mean squared error over the domain (Eq 3.2, averaged).

    Example:
        >>> olh = OLH(epsilon=1.0, domain=1024)
        >>> round(people_without(olh, olh.variance(1000, 1 / 1024)))
        1000
    """
    return olh.variance(1, 1 / olh.size) / error


@reproduction(
    "dissertation-figure-8.5",
    title="People saved by post-processing: n against n', Zipf data set, eps = 1",
    repeats=10,
)
def figure_8_5(context: Context) -> Reproduced:
    """For each n, the n' whose analytical error is the error measured."""
    olh = OLH(epsilon=EPSILON, domain=1024)
    measured: dict[tuple[str, int], list[float]] = {}
    sizes = tuple(dict.fromkeys(context.size(n, least=1000) for n in SIZES))
    steps = [(n, run) for n in sizes for run in range(context.repeats)]
    crowds = {context.size(n, least=1000): zipf_population(context, n) for n in SIZES}
    for n, run in context.track(steps, lambda step: f"n = {step[0]:,}, run {step[1] + 1}"):
        estimate = estimated(crowds[n], EPSILON, context.rng.child("figure 8.5", n, run))
        for method, shares in full_domain(estimate).items():
            error = float(((shares - crowds[n].truth) ** 2).mean())
            measured.setdefault((method, n), []).append(people_without(olh, error))
    needed = {key: np.array(runs) for key, runs in measured.items()}
    figure, panels = canvas(1, 2, width=5)
    draw_rows(
        figure,
        panels,
        sizes,
        {"Zipf": lambda method: [needed[method, n] for n in sizes]},
        labels=("n, with post-processing", "n', without"),
        log="",
    )
    note = f"runs averaged: {context.repeats} (the paper: 30)"
    cells = [Cell(f"n = {n:,}", m, None, float(runs.mean()), f"n'; {note}") for (m, n), runs in needed.items()]
    return cells + judged(_claims, needed), figure


def _claims(needed: Mapping[tuple[str, int], NDArray[np.float64]]) -> list[Claim]:
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
