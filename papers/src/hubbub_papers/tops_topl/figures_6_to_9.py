"""Figures 6 to 9 and section 7: other budgets, ToPL, and the errors of counters."""

import math
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.curator.tops import ToPS
from hubbub.mechanisms.numeric.hybrid import Hybrid
from hubbub.planning.sums import CounterChoice, choose_counter
from hubbub.protocols.topl.threshold import range_errors
from hubbub.protocols.views.basic import Clipped
from hubbub.random.source import Random
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, draw_lines, finish, legend_below
from hubbub_papers.result import Claim, judged
from hubbub_papers.topl_published import CORRECTED, WAVE_FINDERS, find_theta, publish
from hubbub_papers.topl_published import FINDER as OURS
from hubbub_papers.tops_topl.methods import (
    EPSILONS,
    HIERARCHIES,
    THRESHOLDS,
    Floats,
    QueryErrors,
    Runs,
    cells_of,
    cut_off,
    dns_stream,
    height_of,
    holdout,
    looks,
    measure,
    nm_e,
    panels_of,
    paper_streams,
    random_queries,
    reach_of,
    sweep,
)
from hubbub_papers.tops_topl.streams import DATA, ValueStream, paper_stream

PERCENTILES_6 = (85.0, 90.0, 95.0, 99.5, 99.9)
SIZES = (1 << 12, 1 << 16)
_SAME = 1e-6  # orders of magnitude by which an error that counts as Base's may differ from it
_FIXED = 0.05  # the epsilon of NM-E's noise in figure 6, and of the hierarchy in figure 7
_AGAIN = "published are 16 m values, drawn again from the m that find the threshold, as in the authors' code"


def _again(stream: ValueStream, rng: Random) -> Floats:
    return np.asarray(stream.values[rng.child("values").below(stream.values.size, 16 * stream.values.size)])


@reproduction(
    "wang-2021-streams-figure-6",
    title="MSE with fixed percentiles and with NM-E as the threshold, DNS",
    repeats=5,
    data=DATA[:1],
)
def tops_figure_6(context: Context) -> Reproduced:
    """Both m of the authors' code. NM-E spends 0.05; epsilon is that of the hierarchy."""
    fixed = tuple(f"p = {p:g}" for p in PERCENTILES_6)
    methods = (*fixed, "NM-E")
    streams = [
        replace(paper_stream(context, "DNS", m), name=f"m = {m:,}")
        for m in sorted({context.size(m, least=1024) for m in SIZES})
    ]

    def run(stream: ValueStream, epsilon: float, method: str, rng: Random) -> QueryErrors:
        values = _again(stream, rng)
        reach = int(16 ** height_of(values.size))
        if method == "NM-E":
            own = replace(stream, name="DNS")
            theta = nm_e(own, own.values, _FIXED, reach, rng.child("threshold"), publish=epsilon)
        else:
            theta = float(np.percentile(stream.values, float(method.split()[-1])))
        queries = random_queries(values.size, reach, rng)
        errors = HIERARCHIES["Hhat16c"](values, theta, epsilon, reach, queries, rng) - cut_off(values, theta, queries)
        return measure(errors, queries)

    runs = sweep(context, streams, methods, run)

    def claims(some: Runs) -> list[Claim]:
        claims = []
        for stream in streams:
            for epsilon in EPSILONS:
                errors = [some[stream.name, epsilon, method][:, 0].mean() for method in fixed]
                note = f"the best is {fixed[int(np.argmin(errors))]}"
                ratio = float(some[stream.name, epsilon, "NM-E"][:, 0].mean() / min(errors))
                statement = f"{stream.name}, eps = {epsilon:g}: NM-E to the best percentile, MSE"
                claims.append(Claim(statement, ratio, "similar", below=3, note=note))
        return claims

    note = f"{_AGAIN}; the figure's two smaller ranges of epsilon are in no version of that code"
    return cells_of(streams, runs, "MSE", note=note) + judged(claims, runs), panels_of(streams, methods, runs)


@reproduction("wang-2021-streams-figure-7", title="MSE with three private thresholds", repeats=5, data=DATA)
def tops_figure_7(context: Context) -> Reproduced:
    """Epsilon is that of the threshold; the hierarchy spends 0.05."""
    methods = ("NM-E", "S-PAK", "S-P", "Base")
    streams = paper_streams(context)

    def run(stream: ValueStream, epsilon: float, method: str, rng: Random) -> QueryErrors:
        held = replace(stream, values=stream.values[: holdout(stream)])
        values = _again(held, rng)
        reach = int(16 ** height_of(values.size))
        queries = random_queries(values.size, reach, rng)
        if method == "Base":
            return measure(-cut_off(values, 0.0, queries), queries)
        finder = rng.child("threshold")
        if method == "NM-E":
            theta = nm_e(held, held.values, epsilon, reach, finder, publish=_FIXED)
        else:
            theta = THRESHOLDS[method](held, held.values, epsilon, reach, finder)
        errors = HIERARCHIES["Hhat16c"](values, theta, _FIXED, reach, queries, rng) - cut_off(values, theta, queries)
        return measure(errors, queries)

    runs = sweep(context, streams, methods, run)

    def claims(some: Runs) -> list[Claim]:
        pairs = sorted({(name, epsilon) for name, epsilon, _ in some})
        best = max(some[n, e, "NM-E"][:, 0].mean() / some[n, e, "S-PAK"][:, 0].mean() for n, e in pairs)
        return [
            Claim("NM-E to S-PAK, MSE, at worst", float(best), below=1),
            *(_above_base(some, method) for method in ("S-PAK", "S-P")),
        ]

    cells = cells_of(streams, runs, "MSE", note=_AGAIN)
    return cells + judged(claims, runs), panels_of(streams, methods, runs)


def _above_base(runs: Runs, method: str) -> Claim:
    """The paper says that S-PAK and S-P are worse than Base because theta is too large; half of S-P's are below 0."""
    above = {
        (name, epsilon): np.log10(rows[:, 0] / runs[name, epsilon, "Base"][:, 0])
        for (name, epsilon, which), rows in runs.items()
        if which == method
    }
    means = {name: float(np.mean([runs for (n, _), runs in above.items() if n == name])) for name, _ in above}
    every = np.concatenate(list(above.values()))
    nothing = int((np.abs(every) < _SAME).sum())
    spread = f"by stream from {min(means.values()):.1f} to {max(means.values()):.1f}"
    cut = f"in {nothing} of {every.size} runs theta is at most 0, which leaves nothing and is Base"
    statement = f"{method} is above Base, orders of magnitude of the MSE"
    return Claim(statement, float(every.mean()), above=0, note=f"mean over streams, eps and runs, {spread}; {cut}")


EPSILONS_8 = (0.2, 0.6, 1.0, 1.6, 2.0)
PUBLISHED = 1.0  # the epsilon of a clipped report, whatever the search spends
PERCENTILES_8 = (85.0, 95.0, 99.5)
FINDERS, FIXED = (*WAVE_FINDERS, OURS), tuple(f"p = {p:g}" for p in PERCENTILES_8)
METHODS = (*FINDERS, "best theta", *FIXED, "Base")
POINTS = 120
_TRIED = 512


def best_fixed_theta(values: Floats, longest: int, epsilon: float) -> float:
    """The threshold of least expected error on random ranges, chosen with knowledge of all values."""
    thetas = np.geomspace(max(values.min(), values.max() / 1e4), values.max(), _TRIED)
    return float(thetas[int(np.argmin(_expected(values, thetas, longest, epsilon)))])


def _expected(values: Floats, thetas: Floats, longest: int, epsilon: float) -> Floats:
    """Eq 8 with the distribution of these values."""
    distinct, counts = np.unique(values, return_counts=True)
    return range_errors(counts / values.size, distinct, thetas, epsilon=epsilon, r=longest)


def _theta(stream: ValueStream, epsilon: float, method: str, rng: Random) -> float:
    m = holdout(stream)
    rest, reach = stream.values[m:], reach_of(stream, m)
    if method == "best theta":
        return best_fixed_theta(rest, min(reach, rest.size), PUBLISHED)
    if method in FIXED:
        return float(np.percentile(rest, float(method.split()[-1])))
    return find_theta(
        stream.values[:m],
        bound=stream.bound,
        epsilon=PUBLISHED,
        search_epsilon=epsilon,
        r=reach,
        rng=rng,
        finder=method,
    )


def _run_8(stream: ValueStream, epsilon: float, method: str, rng: Random) -> tuple[float, float, float]:
    """The MSE of random ranges after the first m values, the threshold, and the expected MSE with that threshold."""
    m = holdout(stream)
    rest, reach = stream.values[m:], reach_of(stream, m)
    queries = random_queries(rest.size, reach, rng.child("queries"))
    theta, published = 0.0, np.zeros(rest.size)
    if method != "Base":
        theta = _theta(stream, epsilon, method, rng.child("search"))
        hybrid = Hybrid(epsilon=PUBLISHED, low=0.0, high=theta)
        published = hybrid.numbers_of(hybrid.randomize(Clipped(0.0, theta)(rest), rng.child("reports")))
    errors = np.concatenate([[0.0], np.cumsum(published - rest)])
    measured = measure(errors[queries[:, 1]] - errors[queries[:, 0]], queries).mse
    (expected,) = _expected(rest, np.array([theta]), min(reach, rest.size), PUBLISHED)
    return measured, theta, float(expected)


@reproduction(
    "wang-2021-streams-figure-8",
    title="ToPL: MSE with private thresholds, eps = 1 for the stream",
    repeats=5,
    data=DATA,
)
def tops_figure_8(context: Context) -> Reproduced:
    """Epsilon is that of a report of the search; a report of a clipped value spends 1.

    "SW-W" and "SW" minimise Eq 8 as printed; "tail", and SW-W with Eq 8 corrected, are ours.
    """
    streams = paper_streams(context)
    runs = sweep(context, streams, FINDERS, _run_8, EPSILONS_8)
    # The methods that know the values do not depend on the epsilon of the search.
    runs |= sweep(context, streams, METHODS[len(FINDERS) :], _run_8, (PUBLISHED,))

    def claims(some: Runs) -> list[Claim]:
        return [claim for stream in streams for claim in _claims_8(stream.name, some)]

    figure, panels = canvas(1, len(streams), width=3.6)
    for panel, stream in zip(panels, streams, strict=True):
        means = {m: [_mse(runs, stream.name, epsilon, m).mean() for epsilon in EPSILONS_8] for m in METHODS}
        draw_lines(panel, EPSILONS_8, means, looks(METHODS).__getitem__)
        panel.set_yscale("log")
        finish(panel, "$\\epsilon$", "MSE", stream.name)
    legend_below(figure, panels)
    note = "best theta, fixed percentiles of what is published and Base do not depend on epsilon"
    measured = cells_of(streams, runs, "MSE", note=note)
    thetas = cells_of(streams, runs, "theta", place=1, note=note)
    return measured + [cell for cell in thetas if cell.column != "Base"] + judged(claims, runs), figure


def _mse(runs: Runs, name: str, epsilon: float, method: str, place: int = 0) -> Floats:
    return runs[name, epsilon if method in FINDERS else PUBLISHED, method][:, place]


def _claims_8(name: str, runs: Runs) -> list[Claim]:
    note = "in a run all thresholds have the same ranges and the same draws"
    expected = "Eq 8, corrected, with the values that are published"
    worst = max(float(_mse(runs, name, e, "SW-W").mean() / _mse(runs, name, e, "SW").mean()) for e in EPSILONS_8)
    to_base = max(float(_mse(runs, name, e, "SW-W").mean() / _mse(runs, name, e, "Base").mean()) for e in EPSILONS_8)
    return [
        *(_to_the_best(name, runs, finder, "MSE", 0, note) for finder in ("SW-W", CORRECTED, OURS)),
        *(_to_the_best(name, runs, finder, "MSE to be expected", 2, expected) for finder in ("SW-W", CORRECTED, OURS)),
        Claim(f"{name}: SW-W outperforms SW, MSE, at worst", worst, below=1),
        Claim(f"{name}: SW-W outperforms the baseline, MSE, at worst", to_base, below=1),
    ]


def _to_the_best(name: str, runs: Runs, finder: str, what: str, place: int, note: str) -> Claim:
    ratios = _mse(runs, name, 1.0, finder, place) / _mse(runs, name, 1.0, "best theta", place)
    spread = f"smallest {ratios.min():.3g}, largest {ratios.max():.3g} of {ratios.size} runs"
    statement = f"{name}, eps = 1: {finder} to the best theta, {what}, median"
    return Claim(statement, float(np.median(ratios)), below=2, note=f"{spread}; {note}")


@reproduction("wang-2021-streams-figure-9", title="The DNS stream in 120 intervals, ToPL at eps = 1", data=DATA[:1])
def tops_figure_9(context: Context) -> Reproduced:
    """The mean of each interval, as published and in truth."""
    stream = dns_stream(context)
    m = holdout(stream)
    rng = context.rng.child("wang-2021-streams-figure-9")
    release = publish(
        stream.values, epsilon=1.0, bound=stream.bound, m=m, r=reach_of(stream, m), rng=rng, finder="SW-W"
    )
    cuts = np.linspace(0, release.values.size, POINTS + 1).astype(np.int64)
    pair = (stream.values[m:], release.values)
    truth, private = (np.add.reduceat(values, cuts[:-1]) / np.diff(cuts) for values in pair)
    figure, (panel,) = canvas(1, 1, width=7.0)
    panel.plot(truth, color="#d55e00", linewidth=1.2, label="truth")
    panel.plot(private, color="#0072b2", linewidth=1.2, label="ToPL")
    panel.set_title(f"ToPL, eps = 1, theta = {release.theta:.4g}", fontsize=10)
    panel.legend(frameon=False, fontsize=8)
    distance = float(np.abs(private - truth).mean())
    note = f"{stream.note}; the paper does not say how many intervals its Figure 9 has: those of Figure 2"
    cells = [
        Cell("ToPL, eps = 1", "mean distance from the truth", None, distance, note),
        Cell("ToPL, eps = 1", "theta", None, release.theta, note),
    ]
    share = distance / float(truth.mean())
    remark = "mean distance from the truth, to the mean of the stream"
    close = Claim("ToPL at eps = 1 is pretty close to the ground truth", share, below=0.25, note=remark)
    alike = Claim(
        "ToPL and ground truth are on similar trajectories",
        float(np.corrcoef(truth, private)[0, 1]),
        above=0.9,
        note="correlation over the intervals",
    )
    return [*cells, close.cell(), alike.cell()], figure


EPSILON = 0.1
WATCH = 0.2
_BEFORE = 1 << 14
WAYS = ("held out, m", "held out, m/32", "m/32, then updated", "held out, then watched")


@reproduction(
    "wang-2021-streams-section-7",
    title="A shorter holdout, updates while publishing, and drift, eps = 0.1",
    repeats=5,
    data=DATA[:1],
)
def tops_section_7(context: Context) -> Reproduced:
    """DNS as it is, and DNS whose values are five times larger from the middle on; errors after the first m values."""
    steady = paper_stream(context, "DNS", context.size((1 << 16) + (1 << 20), least=20_000))
    values = steady.values.copy()
    values[values.size // 2 :] = np.minimum(5 * values[values.size // 2 :], steady.bound)
    streams = [steady, replace(steady, name="DNS that grows", values=values)]
    runs = sweep(context, streams, WAYS, _run_7, (EPSILON,))

    def claims(some: Runs) -> list[Claim]:
        def ratio(name: str, way: str, rival: str) -> float:
            return float(some[name, EPSILON, way][:, 0].mean() / some[name, EPSILON, rival][:, 0].mean())

        return [
            Claim("DNS: a holdout of m/32 to one of m, MSE", ratio("DNS", WAYS[1], WAYS[0]), below=30),
            Claim("DNS that grows: updated to held out, MSE", ratio("DNS that grows", WAYS[2], WAYS[0]), below=1),
            Claim("DNS that grows: watched to held out, MSE", ratio("DNS that grows", WAYS[3], WAYS[0]), below=1),
        ]

    note = f"the paper names these ways and measures none; {WATCH:.0%} of epsilon looks for a threshold"
    return cells_of(streams, runs, "MSE", note=note) + judged(claims, runs), None


def _run_7(stream: ValueStream, epsilon: float, way: str, rng: Random) -> QueryErrors:
    m = holdout(stream)
    short = way in WAYS[1:3]
    tops = ToPS(
        epsilon=epsilon,
        bound=stream.bound,
        holdout=m // 32 if short else m,
        max_range=reach_of(stream, m),
        watch=0.0 if way in WAYS[:2] else WATCH,
        period=m,
        follow="update" if short else "drift",
    )
    queries = random_queries(stream.values.size - m, reach_of(stream, m), rng) + m
    published = tops.start(rng).push_many(stream.values)
    return measure(_errors(published, stream.values, queries), queries)


def _errors(
    published: NDArray[np.float64], values: NDArray[np.float64], queries: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The errors of ranges. Values that are not published, during a search, count as the mean of those before them."""
    filled, unknown = published.copy(), np.isnan(published)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], unknown.astype(np.int8), [0]])))
    for start, stop in edges.reshape(-1, 2):
        filled[start:stop] = filled[max(start - _BEFORE, 0) : start].mean() if start else 0.0
    off = np.concatenate([[0.0], np.cumsum(filled - values)])
    return np.asarray(off[queries[:, 1]] - off[queries[:, 0]])


LENGTH = 1 << 20
QUERIES: tuple[Literal["prefixes", "ranges"], ...] = ("prefixes", "ranges")
GUARANTEES = {"pure epsilon = 1": (1.0, None), "zCDP, rho = 0.5": (None, 0.5)}


@reproduction(
    "wang-2021-streams-counters", title="Variance of running sums and ranges: hierarchy and factorisation", repeats=5
)
def tops_counters(context: Context) -> Reproduced:
    """Variances in squared thetas, 200 queries, by formula and in noise that is drawn."""
    length = context.size(LENGTH, least=4096)
    plan = [(guarantee, queries) for guarantee in GUARANTEES for queries in QUERIES]
    cells, claims = [], []
    for guarantee, queries in context.track(plan, lambda p: f"{p[0]}, {p[1]}"):
        rng = context.rng.child("counters", guarantee, queries)
        epsilon, rho = GUARANTEES[guarantee]
        choices = choose_counter(length, queries=queries, epsilon=epsilon, rho=rho, rng=rng, runs=context.repeats)
        by_name = {choice.name: choice for choice in choices}
        for name, choice in by_name.items():
            row = f"{guarantee}, {queries}, T = {length:,}: {name}"
            cells.append(Cell(row, "variance on paper", None, choice.on_paper, "exact, in squared thetas"))
            cells.append(Cell(row, "measured", None, choice.measured, f"runs: {context.repeats}"))
        claims += _claims(guarantee, queries, by_name["factorisation"], by_name["hierarchy"])
    return [*cells, *(claim.cell() for claim in claims)], None


def _claims(guarantee: str, queries: str, ours: CounterChoice, tree: CounterChoice) -> list[Claim]:
    """Under zCDP the factorisation is better, under pure epsilon far worse: its columns are long in the L1 norm."""
    above, below = (-math.inf, 1.0) if guarantee.startswith("zCDP") else (1.0, math.inf)
    statement = f"{guarantee}, {queries}: factorisation to hierarchy, variance"
    return [
        Claim(f"{statement} on paper", ours.on_paper / tree.on_paper, above=above, below=below),
        Claim(f"{statement} measured", ours.measured / tree.measured, above=above, below=below),
    ]
