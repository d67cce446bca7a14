"""Figures 6.7 and 6.9: CALM's error by the size and number of its marginals, and for a k it was not planned for."""

from __future__ import annotations

from math import comb

import numpy as np

from hubbub.consistency.marginals import Attributes, Floats, true_table
from hubbub.protocols.marginals.calm import CALM
from hubbub.protocols.marginals.plan import plan_marginals, spread_sets
from hubbub.protocols.marginals.synopsis import Synopsis
from hubbub.random.source import Random
from hubbub_papers.claims import Claim, judged, means, ratio
from hubbub_papers.dissertation.marginal_data import KnownRecords, some_queries, top_items
from hubbub_papers.dissertation.marginal_runs import QUERIES, squared_errors
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, finish

NUMBERS = (1, 2, 4, 8, 16, 32)
EPSILONS = (0.2, 0.6, 1.0, 1.4, 2.0)
FIXED_EPSILON, FIXED_T = 0.6, 16
KS = (2, 3, 4, 5, 6, 7, 8)
PlanSetting = tuple[int, int, float]  # s, t, epsilon


def calm_error(people: KnownRecords, marginals: tuple[Attributes, ...], epsilon: float, k: int, rng: Random) -> float:
    """The mean SSE of k-way marginals by CALM with these marginals; an attribute in none of them counts as uniform."""
    covered = sorted(set().union(*marginals))
    sizes = tuple(people.sizes[column] for column in covered)
    calm = CALM(epsilon, sizes, tuple(tuple(covered.index(column) for column in view) for view in marginals))
    synopsis = calm.estimate(calm.accumulate(calm.randomize(people.records[:, covered], rng.child("reports"))))
    queries = some_queries(len(people.sizes), k, QUERIES, rng.child("queries"))
    truth = {query: true_table(people.records, query, people.sizes) for query in queries}
    return squared_errors({query: _table(synopsis, query, covered, people.sizes) for query in queries}, truth)[0]


def _table(synopsis: Synopsis, query: Attributes, covered: list[int], sizes: tuple[int, ...]) -> Floats:
    known = [covered.index(column) for column in query if column in covered]
    table = synopsis.table(known) if known else np.ones(())
    others = tuple(axis for axis, column in enumerate(query) if column not in covered)
    shape = [sizes[column] for column in query]
    return np.broadcast_to(np.expand_dims(table, others), shape) / np.prod([shape[axis] for axis in others])


@reproduction(
    "dissertation-figure-6.7",
    title="CALM's squared error by the size s and the number t of its marginals, m = 8, k = 3",
    repeats=3,
    needs=("retail",),
)
def figure_6_7(context: Context) -> Reproduced:
    """On baskets: s against t at epsilon 0.6, and s against epsilon with t = 16."""
    n = context.size(2**16, least=2000)
    people = top_items(8).resampled(n, context.rng.child("people"))
    settings = [(s, t, FIXED_EPSILON) for s in range(1, 9) for t in NUMBERS]
    settings += [(s, FIXED_T, e) for s in range(1, 9) for e in EPSILONS if e != FIXED_EPSILON]
    settings = [(s, t, e) for s, t, e in settings if t <= comb(8, s) or t in (NUMBERS[0], FIXED_T)]

    def run_once(setting: PlanSetting, run: int) -> dict[PlanSetting, float]:
        s, t, e = setting
        rng = context.rng.child("figure 6.7", s, t, str(e), run)
        return {setting: calm_error(people, spread_sets(8, s, min(t, comb(8, s))), e, 3, rng)}

    errors = context.measure(settings, run_once, "s, t, eps = {}".format)
    note = f"{context.repeats} runs; an attribute that no marginal has is taken as uniform; {people.note}"
    cells = [Cell(f"s = {s}, t = {t}", f"eps = {e:g}", None, x, note) for (s, t, e), x in means(errors).items()]
    figure, (left, right) = canvas(1, 2)
    for panel, across, heading in ((left, NUMBERS, "t"), (right, EPSILONS, "$\\epsilon$")):
        grid = np.full((8, len(across)), np.nan)
        for (s, t, e), scores in errors.items():
            place = t if panel is left else e
            if place in across and (e == FIXED_EPSILON if panel is left else t == FIXED_T):
                grid[s - 1, across.index(place)] = np.log10(scores.mean())
        panel.imshow(grid, aspect="auto", cmap="viridis", origin="lower")
        panel.set_xticks(range(len(across)), labels=[f"{x:g}" for x in across])
        panel.set_yticks(range(8), labels=[str(s) for s in range(1, 9)])
        finish(panel, heading, "s", "log10 of the SSE", log="")
        panel.grid(False)
    return cells + judged(_claims, errors), figure


def _claims(errors: RunScores[PlanSetting]) -> list[Claim]:
    mean = means(errors)
    falls = ratio(mean[2, 2, FIXED_EPSILON], mean[2, 16, FIXED_EPSILON])
    best = {e: min(range(1, 9), key=lambda s: mean[s, FIXED_T, e]) for e in (EPSILONS[0], EPSILONS[-1])}
    return [
        Claim("s = 2: SSE at t = 2 to t = 16", falls, "gradually decreases", above=1),
        Claim("the best s at eps 2 less that at eps 0.2", best[2.0] - best[0.2], "larger s is preferred", above=-0.5),
    ]


@reproduction(
    "dissertation-figure-6.9",
    title="CALM's squared error for k-way marginals, planned for k' = 3 and for k' = k, m = 16",
    repeats=2,
    needs=("retail",),
)
def figure_6_9(context: Context) -> Reproduced:
    """On 2^18 baskets, drawn with replacement."""
    n = context.size(2**18, least=4000)
    people = top_items(16).resampled(n, context.rng.child("people"))

    def run_once(setting: tuple[float, int, int], run: int) -> dict[tuple[float, int, int], float]:
        e, k, planned = setting
        marginals = plan_marginals(n, people.sizes, e, k=planned).marginals
        rng = context.rng.child("figure 6.9", str(e), k, len(marginals), len(marginals[0]), run)
        return {setting: calm_error(people, marginals, e, k, rng)}

    settings = [(e, k, planned) for e in (0.5, 1.5) for k in KS for planned in sorted({3, k})]
    errors = means(context.measure(settings, run_once, "eps, k, k' = {}".format))
    cells = []
    for (e, k, planned), error in errors.items():
        plan = plan_marginals(n, people.sizes, e, k=planned)
        note = f"t = {plan.t}, s = {plan.s}; {context.repeats} runs; {people.note}"
        cells.append(Cell(f"eps = {e:g}, k = {k}", f"planned for {planned}", None, error, note))
    figure, panels = canvas(1, 2)
    for panel, e in zip(panels, (0.5, 1.5), strict=True):
        panel.plot(KS, [errors[e, k, 3] for k in KS], marker="o", label="k' = 3")
        panel.plot(KS, [errors[e, k, k] for k in KS], marker="o", label="k' = k")
        finish(panel, "k", "SSE", f"eps = {e:g}")
        panel.legend(frameon=False)
    return cells, figure
