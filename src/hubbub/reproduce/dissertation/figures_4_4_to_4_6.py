"""Figures 4.4 to 4.6, exponential population: thresholds, divided people, the step of PEM, estimation errors.

Figure 4.5c compares the distributions under which PEM is "optimised". Nothing in Algorithm 1 depends on a distribution,
and the text does not say what was optimised, so that it is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.reproduce.baselines.heavy_hitters.found_values import FoundValues
from hubbub.reproduce.baselines.heavy_hitters.population import BitPopulation
from hubbub.reproduce.baselines.heavy_hitters.prefixes import search_prefixes
from hubbub.reproduce.claims import Claim, judged, ratio
from hubbub.reproduce.dissertation.figures_4_2_and_4_3 import mean_and_spread, score_cells
from hubbub.reproduce.dissertation.heavy_methods import METHODS, Method, SearchSetting, pem_lengths, sweep
from hubbub.reproduce.harness import Context, Reproduced, reproduction
from hubbub.reproduce.plots import canvas, draw_runs, finish, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DATA = "Exponential"
EPSILONS = (0.5, 0.9, 1.2, 2.0, 3.0, 4.0)
THRESHOLDS = (0.015, 0.023, 0.03, 0.04)
STEPS = (1, 2, 4, 6, 8, 10)
_BY_SHARE = ("PEM", "PEM1", "HASH", "SPM")
_DIVIDED = (
    "PEM",
    "PEM1",
    "PEM1, split",
    "HASH",
    "HASH, divided",
    "SPM",
    "SPM, divided",
    "TreeHist",
    "TreeHist, divided",
)
_K = 16
Runs = Mapping[SearchSetting, NDArray[np.float64]]


@reproduction(
    "dissertation-figure-4.4", title="Values above a share: F1 by epsilon and by the share, exponential", repeats=10
)
def figure_4_4(context: Context) -> Reproduced:
    """All methods keep at most 64 values whose share is estimated to be at least the threshold."""
    by_epsilon = [SearchSetting(DATA, m, e, 64, 0.023) for e in EPSILONS for m in _BY_SHARE]
    by_share = {
        e: [SearchSetting(DATA, m, e, 64, share) for share in THRESHOLDS for m in _BY_SHARE] for e in (1.0, 2.0)
    }
    runs = sweep(context, list(dict.fromkeys([*by_epsilon, *by_share[1.0], *by_share[2.0]])))
    figure, panels = canvas(1, 3)
    _draw(panels[0], runs, by_epsilon, "epsilon", "share 0.023")
    for panel, (epsilon, settings) in zip(panels[1:], by_share.items(), strict=True):
        _draw(panel, runs, settings, "threshold", f"$\\epsilon$ = {epsilon:g}")
    legend_below(figure, panels)

    def claims(runs: Runs) -> list[Claim]:
        pem, *others = (float(runs[SearchSetting(DATA, m, 2.0, 64, 0.023)][:, 1].mean()) for m in _BY_SHARE)
        return [Claim("eps = 2, share 0.023: F1 of PEM to the best other", ratio(pem, max(others)), above=1.0)]

    return score_cells(context, runs, [("F1", 1)]) + judged(claims, runs), figure


@reproduction("dissertation-figure-4.5", title="Divided people, and the step of PEM: F1 by epsilon", repeats=10)
def figure_4_5(context: Context) -> Reproduced:
    """Panels (a) and (b)."""
    divided = [SearchSetting(DATA, method, epsilon, _K) for epsilon in EPSILONS for method in _DIVIDED]
    methods: dict[str, Method] = {f"step {step}": stepped(step) for step in STEPS}
    steps = [SearchSetting(DATA, method, epsilon, _K) for epsilon in EPSILONS for method in methods]
    runs = sweep(context, [*divided, *steps], methods={**METHODS, **methods})
    figure, panels = canvas(1, 2, width=5.0)
    _draw(panels[0], runs, divided, "epsilon", "divided people")
    for method in methods:
        means = [float(runs[SearchSetting(DATA, method, epsilon, _K)][:, 1].mean()) for epsilon in EPSILONS]
        panels[1].plot(EPSILONS, means, marker="o", markersize=4, label=method)
    finish(panels[1], "$\\epsilon$", "F1", "bits added by each group of PEM", log="")
    panels[1].legend(fontsize=8, frameon=False)
    legend_below(figure, panels[:1], columns=5)
    return score_cells(context, runs, [("F1", 1)]) + judged(_of_4_5, runs), figure


@reproduction("dissertation-figure-4.6", title="Squared error of the counts of what was found, by epsilon", repeats=10)
def figure_4_6(context: Context) -> Reproduced:
    """The mean over the true top 16 that were found; runs that found none of them are left out."""
    names = ("PEM", "PEM1", "HASH", "SPM")
    settings = [SearchSetting(DATA, method, epsilon, _K) for epsilon in EPSILONS[2:] for method in names]
    runs = sweep(context, settings)
    figure, panels = canvas()
    for method in names:
        points = [
            setting for setting in settings if setting.method == method and np.isfinite(runs[setting][:, 3]).any()
        ]
        rows = [runs[setting][np.isfinite(runs[setting][:, 3]), 3] for setting in points]
        if points:
            draw_runs(panels[0], [setting.epsilon for setting in points], rows, method)
    finish(panels[0], "$\\epsilon$", "squared error of the counts", log="y" if panels[0].get_lines() else "")
    legend_below(figure, panels)
    n = context.size(1_000_000)

    def claims(runs: Runs) -> list[Claim]:
        error = {m: mean_and_spread(runs[SearchSetting(DATA, m, 4.0, _K)][:, 3])[0] for m in names}
        last = OLH(epsilon=4.0, domain=2).variance(n // len(pem_lengths(64, _K)), 0.03) * n * n
        return [
            Claim("eps = 4: HASH to SPM", ratio(error["HASH"], error["SPM"]), below=1.0),
            Claim("eps = 4: PEM to PEM1", ratio(error["PEM"], error["PEM1"]), below=1.0),
            Claim(
                "eps = 4: PEM to Eq 3.2 of its last group",
                ratio(error["PEM"], last),
                note="at a share of 0.03; people of a group are a sample, and what is found is chosen",
                above=0.7,
                below=2.0,
            ),
        ]

    return score_cells(context, runs, [("squared error", 3)]) + judged(claims, runs), figure


def stepped(step: int) -> Method:
    """PEM whose groups each add so many bits to the first log2(k).

    Example:
        >>> from hubbub import Random
        >>> crowd = BitPopulation.counted([77, 5000], np.array([30_000, 20_000]), 16)
        >>> stepped(8)(crowd, k=2, epsilon=4.0, query_limit=1 << 20, rng=Random(seed=1)).values
        [77, 5000]
    """

    def run(population: BitPopulation, *, k: int, query_limit: int, **options: Any) -> FoundValues:
        first = math.ceil(math.log2(k))
        lengths = [*range(first + step, population.bits, step), population.bits]
        return search_prefixes(population, lengths, k=k, **options)

    return run


def _draw(panel: Axes, runs: Runs, settings: Sequence[SearchSetting], along: str, title: str) -> None:
    for method in dict.fromkeys(setting.method for setting in settings):
        points = [setting for setting in settings if setting.method == method]
        draw_runs(panel, [getattr(point, along) for point in points], [runs[point][:, 1] for point in points], method)
    finish(panel, "$\\epsilon$" if along == "epsilon" else "share", "F1", title, log="")


def _of_4_5(runs: Runs) -> list[Claim]:
    def f1(method: str, epsilon: float) -> float:
        return float(runs[SearchSetting(DATA, method, epsilon, _K)][:, 1].mean())

    return [
        Claim("eps = 1.2: F1 of HASH", f1("HASH", 1.2), "less than 0.2", below=0.2),
        Claim("eps = 1.2: F1 of HASH, divided", f1("HASH, divided", 1.2), "nearly 0.8", above=0.6, below=0.9),
        Claim("eps = 0.9: F1 at step 2", f1("step 2", 0.9), 0.4, above=0.3, below=0.5),
        Claim("eps = 0.9: F1 at step 10", f1("step 10", 0.9), 0.8, above=0.7, below=0.9),
        Claim("eps = 0.9: F1 at step 10 to step 1", ratio(f1("step 10", 0.9), f1("step 1", 0.9)), above=1.0),
    ]
