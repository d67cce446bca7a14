"""Figures 6.7 to 6.9: the size and the number of CALM's marginals."""

from math import comb

import numpy as np

from hubbub.consistency.marginals import Attributes, true_table
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.core.reports import Floats
from hubbub.protocols.marginals.calm import CALM
from hubbub.protocols.marginals.plan import covering_design, plan_marginals, spread_sets
from hubbub.protocols.marginals.synopsis import Synopsis
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator
from hubbub_papers.dissertation.chapter_6_errors import QUERIES, KnownRecords, some_queries, squared_errors, top_items
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, finish
from hubbub_papers.result import Claim, judged, means, ratio

NUMBERS = (1, 2, 4, 8, 16, 32)
EPSILONS_6_7 = (0.2, 0.6, 1.0, 1.4, 2.0)
FIXED_EPSILON, FIXED_T = 0.6, 16
S_6_7 = {8: range(1, 9), 16: range(1, 9)}
"""The sizes by m."""
SMALL = 3
EPSILONS_6_9, KS_6_9 = (0.5, 1.0, 1.5, 2.0), (2, 3, 4, 5, 6, 7, 8, 9, 10)
PlanSetting = tuple[int, int, int, float]  # m, s, t, epsilon


def calm_error(people: KnownRecords, marginals: tuple[Attributes, ...], epsilon: float, k: int, rng: Random) -> float:
    """The mean SSE of k-way marginals by CALM with these marginals; an attribute in none of them counts as uniform."""
    covered = sorted(set().union(*marginals))
    sizes = tuple(people.sizes[column] for column in covered)
    views = tuple(tuple(covered.index(column) for column in view) for view in marginals)
    calm = CALM(epsilon, sizes, views, "adaptive")  # GRR or OUE, as in the text
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
    "wang-2021-analyzing-figure-6.7",
    title="CALM's squared error by the size s and the number t of its marginals, k = 3",
    repeats=3,
    needs=("retail",),
)
def figure_6_7(context: Context) -> Reproduced:
    """On baskets: s against t at m = 8 and epsilon 0.6, and s against epsilon with t = 16, at m = 8 and m = 16."""
    n = context.size(2**16, least=2000)
    people = {m: top_items(m).resampled(n, context.rng.child("people", m)) for m in S_6_7}
    settings = [(8, s, t, FIXED_EPSILON) for s in S_6_7[8] for t in NUMBERS]
    settings += [(m, s, FIXED_T, e) for m in people for s in S_6_7[m] for e in EPSILONS_6_7]
    settings = [(m, s, t, e) for m, s, t, e in settings if t <= comb(m, s) or t in (NUMBERS[0], FIXED_T)]

    def run_once(setting: PlanSetting, run: int) -> dict[PlanSetting, float]:
        m, s, t, e = setting
        rng = context.rng.child("figure 6.7", m, s, t, str(e), run)
        return {setting: calm_error(people[m], spread_sets(m, s, min(t, comb(m, s))), e, 3, rng)}

    errors = context.measure(dict.fromkeys(settings), run_once, "m, s, t, eps = {}".format)
    note = f"{context.repeats} runs; an attribute that no marginal has is taken as uniform; {people[8].note}"
    cells = [
        Cell(f"m = {m}, s = {s}, t = {t}", f"eps = {e:g}", None, x, note) for (m, s, t, e), x in means(errors).items()
    ]
    figure, panels = canvas(1, 3)
    for panel, m, across, heading in (
        (panels[0], 8, NUMBERS, "t"),
        (panels[1], 8, EPSILONS_6_7, "$\\epsilon$"),
        (panels[2], 16, EPSILONS_6_7, "$\\epsilon$"),
    ):
        places = [
            [(m, s, x, FIXED_EPSILON) if heading == "t" else (m, s, FIXED_T, x) for x in across] for s in S_6_7[m]
        ]
        grid = [[np.log10(errors[at].mean()) if at in errors else np.nan for at in row] for row in places]
        panel.imshow(np.array(grid), aspect="auto", cmap="viridis", origin="lower")
        panel.set_xticks(range(len(across)), labels=[f"{x:g}" for x in across])
        panel.set_yticks(range(len(S_6_7[m])), labels=[str(s) for s in S_6_7[m]])
        finish(panel, heading, "s", f"m = {m}: log10 of the SSE", log="")
        panel.grid(False)
    return cells + judged(_claims_6_7, errors), figure


def _claims_6_7(errors: RunScores[PlanSetting]) -> list[Claim]:
    mean = means(errors)
    falls = ratio(mean[8, 2, 2, FIXED_EPSILON], mean[8, 2, 16, FIXED_EPSILON])
    claims = [Claim("m = 8, s = 2: SSE at t = 2 to t = 16", falls, "gradually decreases", above=1)]
    for m, sizes in S_6_7.items():
        small, large = (
            min(mean[m, s, FIXED_T, e] for s in sizes if s < SMALL)
            / min(mean[m, s, FIXED_T, e] for s in sizes if s >= SMALL)
            for e in (EPSILONS_6_7[0], EPSILONS_6_7[-1])
        )
        statement = f"SSE, the best s below {SMALL} to the best from {SMALL} on"
        claims += [
            Claim(f"m = {m}, eps = 0.2: {statement}", small, "smaller s", below=1),
            Claim(f"m = {m}, eps = 2: {statement}", large, "larger s is preferred", above=1),
        ]
    return claims


@reproduction(
    "wang-2021-analyzing-figure-6.9",
    title="CALM's squared error for k-way marginals, planned for k' = 3 and for k' = k, m = 16",
    repeats=3,
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

    settings = [(e, k, planned) for e in EPSILONS_6_9 for k in KS_6_9 for planned in sorted({3, k})]
    runs = context.measure(settings, run_once, "eps, k, k' = {}".format)
    errors, cells = means(runs), []
    for (e, k, planned), error in errors.items():
        plan = plan_marginals(n, people.sizes, e, k=planned)
        note = f"t = {plan.t}, s = {plan.s}; {context.repeats} runs; {people.note}"
        cells.append(Cell(f"eps = {e:g}, k = {k}", f"planned for {planned}", None, error, note))
    figure, panels = canvas(2, 2)
    for panel, e in zip(panels, EPSILONS_6_9, strict=True):
        panel.plot(KS_6_9, [errors[e, k, 3] for k in KS_6_9], marker="o", label="k' = 3")
        panel.plot(KS_6_9, [errors[e, k, k] for k in KS_6_9], marker="o", label="k' = k")
        finish(panel, "k", "SSE", f"eps = {e:g}")
        panel.legend(frameon=False)
    return cells + judged(_claims_6_9, runs), figure


def _claims_6_9(runs: RunScores[tuple[float, int, int]]) -> list[Claim]:
    mean = means(runs)
    worse = {(e, k): ratio(mean[e, k, 3], mean[e, k, k]) for e in EPSILONS_6_9 for k in KS_6_9 if k != 3}
    alike = float(np.mean([0.8 < times < 1.25 for times in worse.values()]))
    late = float(np.mean([worse[1.5, k] for k in KS_6_9 if k > 7]))
    return [
        Claim("SSE for k' = 3 and k' = k within 1.25 times, the part of the settings", alike, "most cases", above=0.5),
        Claim("eps = 1.5, k above 7: SSE, k' = 3 to k' = k", late, "the difference becomes significant", above=1.25),
    ]


M = 16
KS_6_8 = (3, 6, 8)
EPSILONS_6_8 = (0.5, 1.0, 1.5, 2.0)
PLANNED = (2, 3, 4, 6, 8, 10, 12, 16)
VIEW, COVERED = 8, 3
"""A trusted server's marginals have 8 attributes each, and cover all sets of 3."""
CENTRAL_QUERIES = 10
"""Fewer queries than of CALM: from many large views, the table of largest entropy takes seconds to find."""
BUDGET = 3600.0
"""Seconds after which no further run of all settings begins: at full size a run takes minutes."""
Key = tuple[int, str, float]
"""The k of the queries, the plan, and epsilon."""
Runs = RunScores[Key]


def central_views() -> tuple[Attributes, ...]:
    """The marginals that the trusted server counts."""
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
    "wang-2021-analyzing-figure-6.8",
    title="CALM's squared error for k-way marginals with t and s planned for other k, m = 16, and a trusted server's",
    repeats=3,
    needs=("retail",),
)
def figure_6_8(context: Context) -> Reproduced:
    """On 2^18 baskets, drawn with replacement. Plans with the same marginals share their runs, as in the text.

    There are as many of the wanted runs as an hour allows.
    """
    n = context.size(2**18, least=4000)
    people = top_items(M).resampled(n, context.rng.child("people"))
    plans = {(p, e): plan_marginals(n, people.sizes, e, k=p) for p in PLANNED for e in EPSILONS_6_8}
    chosen = [*dict.fromkeys((k, e, plan.marginals) for (_, e), plan in plans.items() for k in KS_6_8)]
    steps: list[tuple[int, float, tuple[Attributes, ...] | None]] = [
        *chosen,
        *((k, e, None) for k in KS_6_8 for e in EPSILONS_6_8),
    ]

    def run_once(step: tuple[int, float, tuple[Attributes, ...] | None], run: int) -> float:
        k, e, marginals = step
        rng = context.rng.child("figure 6.8", k, str(e), len(marginals or ()), run)
        return central_error(people, e, k, rng) if marginals is None else calm_error(people, marginals, e, k, rng)

    known = context.rounds(steps, run_once, lambda step: f"k = {step[0]}, eps = {step[1]:g}", budget=BUDGET)
    runs = {(k, f"k' = {p}", e): known[k, e, plan.marginals] for (p, e), plan in plans.items() for k in KS_6_8}
    runs |= {(k, "centralised", e): known[k, e, None] for k in KS_6_8 for e in EPSILONS_6_8}
    cells = []
    for (k, name, e), scores in runs.items():
        note = f"{len(scores)} runs; {people.note}"
        if name == "centralised":
            views = f"{len(central_views())} marginals of {VIEW} that hold all sets of {COVERED}: our choice"
            note = f"{views}; {CENTRAL_QUERIES} queries; {note}"
        else:
            plan = plans[int(name.split()[-1]), e]
            note = f"t = {plan.t}, s = {plan.s}; {note}"
        cells.append(Cell(f"k = {k}, eps = {e:g}", name, None, float(scores.mean()), note))
    figure, panels = canvas(2, 3)
    for place, k in enumerate(KS_6_8):
        for name in ("k' = 3", "k' = 6", "k' = 8", "centralised"):
            panels[place].plot(EPSILONS_6_8, [runs[k, name, e].mean() for e in EPSILONS_6_8], marker="o", label=name)
        finish(panels[place], "$\\epsilon$", "SSE", f"k = {k}")
        for e in EPSILONS_6_8:
            heights = [runs[k, f"k' = {planned}", e].mean() for planned in PLANNED]
            panels[3 + place].plot(PLANNED, heights, marker="o", label=f"$\\epsilon$ = {e:g}")
        finish(panels[3 + place], "k'", "SSE", f"k = {k}")
        panels[place].legend(frameon=False)
        panels[3 + place].legend(frameon=False)
    return cells + judged(_claims_6_8, runs), figure


def _claims_6_8(runs: Runs) -> list[Claim]:
    claims = []
    for k in KS_6_8:
        for e in EPSILONS_6_8:
            gain = ratio(float(runs[k, f"k' = {k}", e].mean()), float(runs[k, "centralised", e].mean()))
            words = "one to two magnitudes better"
            claims.append(Claim(f"k = {k}, eps = {e:g}: SSE, CALM to centralised", gain, words, above=10, below=100))
    same = ratio(float(runs[3, "k' = 16", 0.5].mean()), float(runs[3, "k' = 3", 0.5].mean()))
    claims.append(Claim("k = 3, eps = 0.5: SSE, k' = 16 to k' = 3", same, "little difference", above=0.8, below=1.25))
    worse = ratio(float(runs[8, "k' = 3", 1.5].mean()), float(runs[8, "k' = 8", 1.5].mean()))
    claims.append(Claim("k = 8, eps = 1.5: SSE, k' = 3 to k' = 8", worse, "worse accuracy", above=1))
    return claims
