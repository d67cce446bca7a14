"""The methods that the figures of ToPS compare, their settings, sweeps and panels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.curator.tops import ToPS
from hubbub.curator.tree import NoiseTree
from hubbub.kernels.curator import FINE
from hubbub.random.noise import laplace_cells
from hubbub.random.source import Random
from hubbub_papers.harness import Cell, Context, RunScores
from hubbub_papers.plots import canvas, draw_lines, finish, legend_below
from hubbub_papers.result import joined
from hubbub_papers.tops_topl.streams import PAPER, ValueStream, paper_stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERCENTILE = 99.5
_RAISED = 99.575
_BETA = 0.3 * 0.02


def smooth_sensitivity(values: NDArray[np.float64], bound: float, rank: int, decay: float) -> float:
    """max over k of e^(-b k) max over t of V(P+t) - V(P+t-k-1) (appendix B), for values in order."""
    m = values.size
    best = 0.0
    for k in range(m + 2):
        weight = math.exp(-decay * k)
        if weight * bound <= best:
            break  # no later k can be larger
        top = np.arange(rank, rank + k + 2)
        best = max(best, weight * float((_at(values, bound, top) - _at(values, bound, top - k - 1)).max()))
    return best


def _at(values: NDArray[np.float64], bound: float, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    inside = values[np.clip(ranks - 1, 0, values.size - 1)]
    return np.where(ranks < 1, 0.0, np.where(ranks > values.size, bound, inside))


def threshold_s_p(values: NDArray[np.float64], bound: float, epsilon: float, rng: Random) -> float:
    """The noisy percentile: unbiased, and often far above the bound or below 0 (then the smallest positive number)."""
    quantile, spread, _ = _percentile(values, bound, epsilon, PERCENTILE)
    return max(quantile + spread * _laplace(rng), 1e-9)


def threshold_s_pak(values: NDArray[np.float64], bound: float, epsilon: float, rng: Random) -> float:
    """The noisy percentile, raised so that it is unlikely to be too small."""
    quantile, spread, decay = _percentile(values, bound, epsilon, _RAISED)
    reach = -math.log(2 * _BETA)
    raised = 1 / (1 - math.expm1(decay) * reach / (epsilon / 2))
    return max(quantile + raised * spread * (_laplace(rng) + reach), 1e-9)


def _percentile(
    values: NDArray[np.float64], bound: float, epsilon: float, percentile: float
) -> tuple[float, float, float]:
    """The percentile, its smooth sensitivity over a = epsilon/2, and the smoothing b; delta = 1/n^2."""
    ordered = np.sort(values)
    rank = math.ceil(percentile / 100 * ordered.size)
    decay = epsilon / (4 * math.log(ordered.size))
    return float(ordered[rank - 1]), smooth_sensitivity(ordered, bound, rank, decay) / (epsilon / 2), decay


def _laplace(rng: Random) -> float:
    """A standard Laplace variate."""
    uniform = (int(rng.uint64(1)[0]) + 0.5) / 2**64
    return math.copysign(math.log1p(-abs(2 * uniform - 1)), 0.5 - uniform)


QUERIES = 200
_UNIT = 1 << 16  # cells of scale for noise of scale 1
Floats = NDArray[np.float64]
Queries = NDArray[np.int64]


class QueryErrors(NamedTuple):
    """The four errors of the paper: Eq 9 and appendix F."""

    mse: float
    mae: float
    mmse: float
    mmae: float


def random_queries(n: int, longest: int, rng: Random, count: int = QUERIES) -> Queries:
    """Random ranges (first, last) of at least one and at most `longest` positions."""
    start = rng.below(max(n - longest, 0) + 1, count)
    room = min(n, longest)
    ends = np.sort(np.stack([rng.below(room + 1, count), rng.below(room, count)], axis=1), axis=1)
    ends[:, 1] += ends[:, 0] == ends[:, 1]
    return np.asarray(ends + start[:, None])


def measure(errors: Floats, queries: Queries) -> QueryErrors:
    """The four errors of the paper, from the errors of answers."""
    means = errors / (queries[:, 1] - queries[:, 0])
    squared, absolute = (float(np.mean(part)) for part in (errors**2, np.abs(errors)))
    return QueryErrors(squared, absolute, float(np.mean(means**2)), float(np.abs(means).mean()))


def height_of(n: int, fan_out: int = 16) -> int:
    """The layers of a hierarchy over n values."""
    return next(h for h in range(1, 64) if fan_out**h >= n)


def search_of(stream: ValueStream, epsilon: float, reach: int, m: int) -> ToPS:
    """ToPS as the paper runs it: candidates 1 to B, Laplace noise; c = 60 on the paper's streams, else 3% of B."""
    return ToPS(
        epsilon=epsilon,
        bound=stream.bound,
        holdout=m,
        max_range=reach,
        candidates=int(stream.bound),
        noise="laplace",
        constant=60.0 if stream.name in PAPER else 0.0,
    )


Threshold = Callable[[ValueStream, Floats, float, int, Random], float]


def nm_e(
    stream: ValueStream, values: Floats, epsilon: float, reach: int, rng: Random, publish: float | None = None
) -> float:
    """NM-E. Eq 6, the error of what is published, has the epsilon that publishes, as in the authors' code."""
    search = search_of(stream, publish or epsilon, reach, values.size).search
    return replace(search, epsilon=Fraction(epsilon)).choose(search.count(values), rng)


def _s_pak(stream: ValueStream, values: Floats, epsilon: float, reach: int, rng: Random) -> float:
    return threshold_s_pak(values, stream.bound, epsilon, rng)


def _s_p(stream: ValueStream, values: Floats, epsilon: float, reach: int, rng: Random) -> float:
    return threshold_s_p(values, stream.bound, epsilon, rng)


def _s_pak_cut(stream: ValueStream, values: Floats, epsilon: float, reach: int, rng: Random) -> float:
    return min(_s_pak(stream, values, epsilon, reach, rng), stream.bound)


THRESHOLDS: dict[str, Threshold] = {"NM-E": nm_e, "S-PAK": _s_pak, "S-P": _s_p, "S-PAK cut": _s_pak_cut}
"""From the held-out values to a threshold. "S-PAK cut" is cut at the bound; the paper's S-PAK is not."""

Hierarchy = Callable[[Floats, float, float, int, Queries, Random], Floats]
"""From values, theta, epsilon, the reach r, queries and randomness to the errors of answers on the clipped values."""


def _raw(fan_out: int) -> Hierarchy:
    def errors(values: Floats, theta: float, epsilon: float, reach: int, queries: Queries, rng: Random) -> Floats:
        height = height_of(reach, fan_out)
        noise: dict[tuple[int, int], int] = {}
        used = [
            [noise.setdefault(node, len(noise)) for node in _nodes(first, last, fan_out, height)]
            for first, last in queries
        ]
        drawn = laplace_cells(len(noise), _UNIT, rng) / _UNIT * (height * theta / epsilon)
        return np.array([drawn[nodes].sum() for nodes in used])

    return errors


def _nodes(first: int, last: int, fan_out: int, height: int) -> list[tuple[int, int]]:
    """The fewest nodes that add up to a range, as (level, place)."""
    nodes: list[tuple[int, int]] = []
    for level in range(height):
        up, down = -(-first // fan_out), last // fan_out
        if level == height - 1 or up >= down:
            return nodes + [(level, place) for place in range(int(first), int(last))]
        nodes += [(level, place) for place in range(int(first), int(up * fan_out))]
        nodes += [(level, place) for place in range(int(down * fan_out), int(last))]
        first, last = up, down
    return nodes


def _consistent(values: Floats, theta: float, epsilon: float, reach: int, queries: Queries, rng: Random) -> Floats:
    tree = NoiseTree(epsilon=Fraction(epsilon), fan_out=16, layers=height_of(reach))
    trees = -(-int(queries.max()) // tree.leaves)
    noise = np.concatenate([tree.noise(rng) for _ in range(trees)])
    total = np.concatenate([[0], np.cumsum(noise)])
    return np.asarray((total[queries[:, 1]] - total[queries[:, 0]]) * (theta / tree.cells / FINE))


def smoothed(smoother: str = "recent") -> Hierarchy:
    """H16 with consistency and a smoother: the perturber and smoother of ToPS, with a fixed threshold.

    The moving average is of 4 blocks, the median of all, the exponential weight 0.6: the authors' code has these.
    """

    def errors(values: Floats, theta: float, epsilon: float, reach: int, queries: Queries, rng: Random) -> Floats:
        bound = max(theta, float(values.max()))
        window = 4 if smoother == "moving" else min(values.size, 1 << 12)
        tops = ToPS(epsilon=epsilon, bound=bound, max_range=reach, smoother=smoother, window=window, weight=0.6)
        published = tops.start(rng, theta=theta).push_many(values)
        total = np.concatenate([[0.0], np.cumsum(published - np.minimum(values, theta))])
        return np.asarray(total[queries[:, 1]] - total[queries[:, 0]])

    return errors


HIERARCHIES: dict[str, Hierarchy] = {"H2": _raw(2), "H16": _raw(16), "H16c": _consistent, "Hhat16c": smoothed()}
"""The paper's names; Hhat16c is with the Recent smoother."""

FULL = {
    "PAK": ("S-PAK", "H2"),
    "PAK, theta cut at B": ("S-PAK cut", "H2"),
    "Hhat16c": ("S-PAK", "Hhat16c"),
    "NM-E": ("NM-E", "H2"),
    "ToPS": ("NM-E", "Hhat16c"),
}
"""Figure 3: the threshold and the hierarchy of each method. PAK with a threshold cut at the bound is ours."""


def answer_errors(
    method: str, stream: ValueStream, m: int, reach: int, epsilon: float, queries: Queries, rng: Random
) -> Floats:
    """The errors of a whole method: its threshold is found on the first m values; clipping counts as error."""
    if method == "Base":
        total = np.concatenate([[0.0], np.cumsum(stream.values[m:])])
        return np.asarray(total[queries[:, 0]] - total[queries[:, 1]])
    threshold, hierarchy = FULL[method]
    theta = THRESHOLDS[threshold](stream, stream.values[:m], epsilon, reach, rng.child("threshold"))
    rest = stream.values[m:]
    return HIERARCHIES[hierarchy](rest, theta, epsilon, reach, queries, rng) - cut_off(rest, theta, queries)


def cut_off(values: Floats, theta: float, queries: Queries) -> Floats:
    """The part of each range's sum that is lost by clipping at theta."""
    total = np.concatenate([[0.0], np.cumsum(np.maximum(values - theta, 0.0))])
    return np.asarray(total[queries[:, 1]] - total[queries[:, 0]])


EPSILONS = (0.01, 0.02, 0.05, 0.1)
HOLDOUT = 1 << 16
Key = tuple[str, float, str]  # stream, epsilon, method
Runs = RunScores[Key]
_COLOURS = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7", "#808080", "#7f4f24")
_MARKERS = "os^DvPX*h"


def paper_streams(context: Context) -> list[ValueStream]:
    """The paper's four streams; scaled down they are shorter."""
    return [_scaled(context, name) for name in PAPER]


def dns_stream(context: Context) -> ValueStream:
    """The paper's DNS."""
    return _scaled(context, "DNS")


def _scaled(context: Context, name: str) -> ValueStream:
    return paper_stream(context, name, context.size(min(PAPER[name].n, HOLDOUT + (1 << 20)), least=4000))


def holdout(stream: ValueStream, most: int = HOLDOUT) -> int:
    """m: the paper's, or a fifth of a stream that is shorter than five times the paper's m."""
    return min(most, stream.values.size // 5)


def reach_of(stream: ValueStream, m: int) -> int:
    """r: 2^20, or for a shorter stream the power of 16 that covers it."""
    return int(min(1 << 20, 16 ** height_of(stream.values.size - m)))


def sweep(
    context: Context,
    streams: Sequence[ValueStream],
    methods: Sequence[str],
    run: Callable[[ValueStream, float, str, Random], Sequence[float]],
    epsilons: Sequence[float] = EPSILONS,
) -> dict[Key, NDArray[np.float64]]:
    """Run each method on each stream at each epsilon; return the scores, one row per run.

    In one run all methods have the same randomness: the same queries, and the same noise as far as they draw alike.
    """

    def run_once(setting: tuple[ValueStream, float, str], number: int) -> dict[Key, Sequence[float]]:
        stream, epsilon, method = setting
        rng = context.rng.child("tops", stream.name, str(epsilon), number)
        return {(stream.name, epsilon, method): run(stream, epsilon, method, rng)}

    settings = [(stream, epsilon, method) for stream in streams for epsilon in epsilons for method in methods]
    return context.measure(settings, run_once, "{0[0].name}, eps = {0[1]:g}, {0[2]}".format)


def cells_of(streams: Sequence[ValueStream], runs: Runs, what: str, *, place: int = 0, note: str = "") -> list[Cell]:
    """A cell for each setting: the mean over the runs of one column. The paper prints none of them."""
    notes = {stream.name: stream.note for stream in streams}
    return [
        Cell(
            f"{name}, eps = {epsilon:g}: {what}",
            method,
            None,
            float(rows[:, place].mean()),
            joined(notes[name], note, f"runs: {len(rows)}"),
        )
        for (name, epsilon, method), rows in runs.items()
    ]


def orders(runs: Runs, worse: str, better: str, place: int = 0) -> list[float]:
    """The powers of ten by which one method's error is below another's, for each stream and epsilon."""
    keys = [(name, epsilon) for name, epsilon, method in runs if method == better]
    return [
        float(np.log10(runs[name, epsilon, worse][:, place].mean() / runs[name, epsilon, better][:, place].mean()))
        for name, epsilon in keys
    ]


def panels_of(
    streams: Sequence[ValueStream], methods: Sequence[str], runs: Runs, errors: Sequence[str] = ("mse",)
) -> Figure:
    """A panel for each error and stream: the mean over the runs of every method, by epsilon."""
    figure, panels = canvas(len(errors), len(streams), width=3.6, height=3.6 if len(errors) == 1 else 3.0)
    for panel, (error, stream) in zip(panels, product(errors, streams), strict=True):
        place = QueryErrors._fields.index(error)
        means = {m: [runs[stream.name, e, m][:, place].mean() for e in EPSILONS] for m in methods}
        draw_lines(panel, EPSILONS, means, looks(methods).__getitem__)
        finish(panel, "$\\epsilon$", error.upper(), stream.name)
    legend_below(figure, panels, columns=6)
    return figure


def looks(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The plotting options of each method's line."""
    styles = zip(methods, _COLOURS, _MARKERS, strict=False)
    return {
        method: {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.3, "label": method}
        for method, colour, marker in styles
    }
