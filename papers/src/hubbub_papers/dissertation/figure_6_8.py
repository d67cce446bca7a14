"""Figure 6.8: k-way marginals by CALM planned for another k, and by a trusted server."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.marginals import Attributes, true_table
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.protocols.marginals.plan import covering_design, plan_marginals
from hubbub.protocols.marginals.synopsis import Synopsis
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator
from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.figures_6_7_and_6_9 import calm_error
from hubbub_papers.dissertation.marginal_data import KnownRecords, some_queries, top_items
from hubbub_papers.dissertation.marginal_runs import squared_errors
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, finish

M = 16
KS = (3, 6, 8)
EPSILONS = (0.5, 1.0, 1.5, 2.0)
PLANNED = (2, 3, 4, 6, 8, 10, 12, 16)
VIEW, COVERED = 8, 3
"""A trusted server's marginals have 8 attributes each, and cover all sets of 3."""
CENTRAL_QUERIES = 10
"""Fewer queries than of CALM: from many large views, the table of largest entropy takes seconds to find."""
Key = tuple[int, str, float]
"""The k of the queries, the plan, and epsilon."""
Runs = RunScores[Key]


def central_views() -> tuple[Attributes, ...]:
    """The marginals that the trusted server counts.

    Example:
        >>> len(central_views()) < 60
        True
    """
    return tuple(covering_design(M, COVERED, VIEW, 1000) or ())


def central_synopsis(people: KnownRecords, epsilon: float, rng: Random) -> Synopsis:
    """PreView: a trusted server adds Laplace noise to the counts of each view, with an equal part of epsilon each."""
    views, n = central_views(), len(people.records)
    scale = len(views) / epsilon / n
    noise = Noise(floor=2 * scale**2, slope=0.0)
    draws, estimates = generator(rng), {}
    for view in views:
        table = true_table(people.records, view, people.sizes).ravel()
        values = table + draws.laplace(0.0, scale, table.size)
        estimates[view] = Estimate(values, np.full(table.size, 2 * scale**2), n, noise=noise)
    return Synopsis(estimates, people.sizes)


def central_error(people: KnownRecords, epsilon: float, k: int, rng: Random) -> float:
    """The mean SSE of k-way marginals from a trusted server."""
    synopsis = central_synopsis(people, epsilon, rng.child("noise"))
    queries = some_queries(M, k, CENTRAL_QUERIES, rng.child("queries"))
    truth = {query: true_table(people.records, query, people.sizes) for query in queries}
    return squared_errors({query: synopsis.table(query) for query in queries}, truth)[0]


@reproduction(
    "dissertation-figure-6.8",
    title="CALM's squared error for k-way marginals with t and s planned for other k, m = 16, and a trusted server's",
    repeats=3,
    needs=("retail",),
)
def figure_6_8(context: Context) -> Reproduced:
    """On 2^18 baskets, drawn with replacement. Plans with the same marginals share their runs, as in the text."""
    n = context.size(2**18, least=4000)
    people = top_items(M).resampled(n, context.rng.child("people"))
    plans = {(p, e): plan_marginals(n, people.sizes, e, k=p) for p in PLANNED for e in EPSILONS}
    known: dict[tuple[int, float, tuple[Attributes, ...]], NDArray[np.float64]] = {}
    runs: dict[Key, NDArray[np.float64]] = {}
    steps: list[tuple[int, int | None, float]] = [(k, p, e) for k in KS for e in EPSILONS for p in (*PLANNED, None)]
    for k, planned, e in context.track(steps, lambda step: f"k, k', eps = {step}"):
        if planned is None:
            rngs = [context.rng.child("figure 6.8", "central", k, str(e), run) for run in range(context.repeats)]
            runs[k, "centralised", e] = np.array([central_error(people, e, k, rng) for rng in rngs])
            continue
        marginals = plans[planned, e].marginals
        if (k, e, marginals) not in known:
            rngs = [context.rng.child("figure 6.8", k, str(e), len(marginals), run) for run in range(context.repeats)]
            known[k, e, marginals] = np.array([calm_error(people, marginals, e, k, rng) for rng in rngs])
        runs[k, f"k' = {planned}", e] = known[k, e, marginals]
    cells = []
    for (k, name, e), scores in runs.items():
        note = f"{context.repeats} runs; {people.note}"
        if name == "centralised":
            views = f"{len(central_views())} marginals of {VIEW} that hold all sets of {COVERED}: our choice"
            note = f"{views}; {CENTRAL_QUERIES} queries; {note}"
        else:
            plan = plans[int(name.split()[-1]), e]
            note = f"t = {plan.t}, s = {plan.s}; {note}"
        cells.append(Cell(f"k = {k}, eps = {e:g}", name, None, float(scores.mean()), note))
    figure, panels = canvas(2, 3)
    for place, k in enumerate(KS):
        for name in ("k' = 3", "k' = 6", "k' = 8", "centralised"):
            panels[place].plot(EPSILONS, [runs[k, name, e].mean() for e in EPSILONS], marker="o", label=name)
        finish(panels[place], "$\\epsilon$", "SSE", f"k = {k}")
        for e in EPSILONS:
            heights = [runs[k, f"k' = {planned}", e].mean() for planned in PLANNED]
            panels[3 + place].plot(PLANNED, heights, marker="o", label=f"$\\epsilon$ = {e:g}")
        finish(panels[3 + place], "k'", "SSE", f"k = {k}")
        panels[place].legend(frameon=False)
        panels[3 + place].legend(frameon=False)
    return cells + judged(_claims, runs), figure


def _claims(runs: Runs) -> list[Claim]:
    claims = []
    for k in KS:
        for e in EPSILONS:
            gain = ratio(float(runs[k, f"k' = {k}", e].mean()), float(runs[k, "centralised", e].mean()))
            words = "one to two magnitudes better"
            claims.append(Claim(f"k = {k}, eps = {e:g}: SSE, CALM to centralised", gain, words, above=10))
    same = ratio(float(runs[3, "k' = 16", 0.5].mean()), float(runs[3, "k' = 3", 0.5].mean()))
    claims.append(Claim("k = 3, eps = 0.5: SSE, k' = 16 to k' = 3", same, "little difference", above=0.8, below=1.25))
    worse = ratio(float(runs[8, "k' = 3", 1.5].mean()), float(runs[8, "k' = 8", 1.5].mean()))
    claims.append(Claim("k = 8, eps = 1.5: SSE, k' = 3 to k' = 8", worse, "worse accuracy", above=1))
    return claims
