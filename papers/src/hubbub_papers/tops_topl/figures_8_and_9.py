"""Figures 8 and 9, ToPL: the paper's two searches for a threshold and ours, and the DNS stream as published."""

from __future__ import annotations

import numpy as np

from hubbub.mechanisms.numeric.hybrid import Hybrid
from hubbub.protocols.topl.threshold import range_errors
from hubbub.protocols.views.basic import Clipped
from hubbub.random.source import Random
from hubbub_papers.claims import Claim, judged
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, draw_lines, finish, legend_below
from hubbub_papers.topl_published import FINDER as OURS
from hubbub_papers.topl_published import find_theta, publish
from hubbub_papers.tops_topl.methods import Floats, measure, random_queries
from hubbub_papers.tops_topl.setting import Runs, cells_of, dns_stream, holdout, looks, paper_streams, reach_of, sweep
from hubbub_papers.tops_topl.streams import HOW, ValueStream

EPSILONS = (0.2, 0.6, 1.0, 1.6, 2.0)
PUBLISHED = 1.0  # the epsilon of a clipped report, whatever the search spends
PERCENTILES = (85.0, 95.0, 99.5)
FINDERS, FIXED = ("SW-W", "SW", OURS), tuple(f"p = {p:g}" for p in PERCENTILES)
METHODS = (*FINDERS, "best theta", *FIXED, "Base")
POINTS = 120
_TRIED = 512


def best_fixed_theta(values: Floats, longest: int, epsilon: float) -> float:
    """The threshold of least expected error on random ranges, chosen with knowledge of all values.

    Example:
        >>> best_fixed_theta(np.array([1.0, 2.0, 50.0] * 1000), 100, 1.0) < 50
        True
    """
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


def _run(stream: ValueStream, epsilon: float, method: str, rng: Random) -> tuple[float, float, float]:
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


@reproduction("tops-figure-8", title="ToPL: MSE with private thresholds, eps = 1 for the stream", repeats=5)
def tops_figure_8(context: Context) -> Reproduced:
    """Epsilon is that of a report of the search; a report of a clipped value spends 1. "tail" is ours."""
    streams = paper_streams(context)
    runs = sweep(context, streams, FINDERS, _run, EPSILONS)
    # The methods that know the values do not depend on the epsilon of the search.
    runs |= sweep(context, streams, METHODS[len(FINDERS) :], _run, (PUBLISHED,))

    def claims(some: Runs) -> list[Claim]:
        return [claim for stream in streams for claim in _claims(stream.name, some)]

    figure, panels = canvas(1, len(streams), width=3.6)
    for panel, stream in zip(panels, streams, strict=True):
        means = {m: [_mse(runs, stream.name, epsilon, m).mean() for epsilon in EPSILONS] for m in METHODS}
        draw_lines(panel, EPSILONS, means, looks(METHODS).__getitem__)
        panel.set_yscale("log")
        finish(panel, "$\\epsilon$", "MSE", stream.name)
    legend_below(figure, panels)
    note = f"{HOW}; best theta, fixed percentiles of what is published and Base do not depend on epsilon"
    measured = cells_of(context, runs, "MSE", note=note)
    thetas = cells_of(context, runs, "theta", place=1, note=note)
    return measured + [cell for cell in thetas if cell.column != "Base"] + judged(claims, runs), figure


def _mse(runs: Runs, name: str, epsilon: float, method: str, place: int = 0) -> Floats:
    return runs[name, epsilon if method in FINDERS else PUBLISHED, method][:, place]


def _claims(name: str, runs: Runs) -> list[Claim]:
    note = "in a run all thresholds have the same ranges and the same draws"
    expected = "Eq 8, corrected, with the values that are published"
    worst = max(float(_mse(runs, name, e, "SW-W").mean() / _mse(runs, name, e, "SW").mean()) for e in EPSILONS)
    to_base = max(float(_mse(runs, name, e, "SW-W").mean() / _mse(runs, name, e, "Base").mean()) for e in EPSILONS)
    return [
        *(_to_the_best(name, runs, finder, "MSE", 0, note) for finder in ("SW-W", OURS)),
        *(_to_the_best(name, runs, finder, "MSE to be expected", 2, expected) for finder in ("SW-W", OURS)),
        Claim(f"{name}: SW-W outperforms SW, MSE, at worst", worst, below=1),
        Claim(f"{name}: SW-W outperforms the baseline, MSE, at worst", to_base, below=1),
    ]


def _to_the_best(name: str, runs: Runs, finder: str, what: str, place: int, note: str) -> Claim:
    ratios = _mse(runs, name, 1.0, finder, place) / _mse(runs, name, 1.0, "best theta", place)
    spread = f"smallest {ratios.min():.3g}, largest {ratios.max():.3g} of {ratios.size} runs; the bound is ours"
    statement = f"{name}, eps = 1: {finder} to the best theta, {what}, median"
    return Claim(statement, float(np.median(ratios)), below=2, note=f"{spread}; {note}")


@reproduction("tops-figure-9", title="The DNS stream in 120 intervals, ToPL at eps = 1")
def tops_figure_9(context: Context) -> Reproduced:
    """The mean of each interval, as published and in truth."""
    stream = dns_stream(context)
    m = holdout(stream)
    rng = context.rng.child("tops-figure-9")
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
    note = f"{HOW}; the paper does not say how many intervals its Figure 9 has: those of Figure 2"
    cells = [
        Cell("ToPL, eps = 1", "mean distance from the truth", None, distance, note),
        Cell("ToPL, eps = 1", "theta", None, release.theta, note),
    ]
    share = distance / float(truth.mean())
    remark = "mean distance from the truth, to the mean of the stream; the bound is ours"
    close = Claim("ToPL at eps = 1 is pretty close to the ground truth", share, below=0.25, note=remark)
    alike = Claim(
        "ToPL and ground truth are on similar trajectories",
        float(np.corrcoef(truth, private)[0, 1]),
        above=0.9,
        note="correlation over the intervals; the bound is ours",
    )
    return [*cells, close.cell(), alike.cell()], figure
