"""Figures 4 and 5: smoothers and hierarchies on values that are clipped at the 95th percentile, truth included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.kernels.curator import SMOOTHERS
from hubbub.random.source import Random
from hubbub_papers.claims import Claim, judged
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.tops_topl.methods import (
    HIERARCHIES,
    Hierarchy,
    QueryErrors,
    cut_off,
    measure,
    random_queries,
    smoothed,
)
from hubbub_papers.tops_topl.setting import EPSILONS, Runs, cells_of, holdout, panels_of, paper_streams, reach_of, sweep
from hubbub_papers.tops_topl.streams import ValueStream

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _base(values: np.ndarray, theta: float, epsilon: float, reach: int, queries: np.ndarray, rng: Random) -> np.ndarray:
    return -cut_off(np.minimum(values, theta), 0.0, queries)


@reproduction("tops-figure-4", title="MSE of range queries with five smoothers", repeats=5)
def tops_figure_4(context: Context) -> Reproduced:
    """The five smoothers on H16 with consistency."""
    runs, figure = _compare(context, {name: smoothed(name) for name in SMOOTHERS})

    def claims(some: Runs) -> list[Claim]:
        dns = [_ratio(some, "DNS", e, "recent", ("mean", "median")) for e in EPSILONS]
        spread = max(_ratio(some, n, e, "recent", SMOOTHERS[1:]) for n, e in {(k[0], k[1]) for k in some})
        return [
            Claim("DNS: Recent to the better of Mean and Median, MSE", float(np.mean(dns)), below=1),
            Claim("Recent to the best of the others, MSE, at worst", spread, below=2, note="the bound is ours"),
        ]

    note = "the paper prints neither the window nor alpha: 16 blocks for median and moving average, alpha = 0.5"
    cells = [Cell(c.row, c.column, None, c.ours, f"{c.note}; {note}") for c in cells_of(context, runs, "MSE")]
    return cells + judged(claims, runs), figure


@reproduction("tops-figure-5", title="MSE of range queries with five hierarchies", repeats=5)
def tops_figure_5(context: Context) -> Reproduced:
    """H2, H16, H16 with consistency, that with the Recent smoother, and always 0."""
    runs, figure = _compare(context, {**HIERARCHIES, "Base": _base})

    def claims(some: Runs) -> list[Claim]:
        pairs = sorted({(name, epsilon) for name, epsilon, _ in some})

        def mean(method: str, rival: str) -> float:
            ratios = [some[n, e, rival][:, 0].mean() / some[n, e, method][:, 0].mean() for n, e in pairs]
            return float(np.exp(np.mean(np.log(ratios))))

        grown = [
            some[n, EPSILONS[0], m][:, 0].mean() / some[n, EPSILONS[-1], m][:, 0].mean()
            for n in {name for name, _ in pairs}
            for m in ("H2", "H16", "H16c")
        ]
        return [
            Claim("H16 to H2, times better", mean("H16", "H2"), paper=5.0, above=4, below=6),
            Claim("H16c to H16, times better", mean("H16c", "H16"), paper="approximately 2", above=1.7, below=3.5),
            Claim("Hhat16c to H16c, times better", mean("Hhat16c", "H16c"), paper=10.0, above=1, note="but on DNS"),
            Claim("eps from 0.01 to 0.1, times better", float(np.mean(grown)), paper=100.0, above=80, below=125),
        ]

    return cells_of(context, runs, "MSE") + judged(claims, runs), figure


def _compare(context: Context, hierarchies: dict[str, Hierarchy]) -> tuple[Runs, Figure]:
    streams = paper_streams(context)

    def run(stream: ValueStream, epsilon: float, method: str, rng: Random) -> QueryErrors:
        m = holdout(stream)
        reach, rest = reach_of(stream, m), stream.values[m:]
        theta = float(np.percentile(stream.values, 95))
        queries = random_queries(rest.size, reach, rng)
        return measure(hierarchies[method](rest, theta, epsilon, reach, queries, rng), queries)

    runs = sweep(context, streams, tuple(hierarchies), run)
    return runs, panels_of(streams, tuple(hierarchies), runs)


def _ratio(runs: Runs, name: str, epsilon: float, method: str, rivals: tuple[str, ...]) -> float:
    best = min(float(runs[name, epsilon, rival][:, 0].mean()) for rival in rivals)
    return float(runs[name, epsilon, method][:, 0].mean()) / best
