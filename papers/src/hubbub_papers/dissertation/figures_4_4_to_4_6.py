"""Figures 4.4 to 4.6, exponential population: thresholds, divided people, the step of PEM, estimation errors.

Figure 4.5c is left out. It compares the distributions under which PEM is "optimised", but nothing in Algorithm 1
depends on a distribution, and the text does not say what was optimised.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub_papers.baselines.heavy_hitters.found_values import FoundValues
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation
from hubbub_papers.baselines.heavy_hitters.prefixes import search_prefixes
from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.heavy_methods import ERROR, F1, METHODS, Method, SearchSetting, pem_lengths, sweep
from hubbub_papers.dissertation.search_figures import Runs, draw_settings, mean_and_deviation, score_cells
from hubbub_papers.harness import Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, finish, legend_below

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
    _draw_f1(panels[0], runs, by_epsilon, "epsilon", "share 0.023")
    for panel, (epsilon, settings) in zip(panels[1:], by_share.items(), strict=True):
        _draw_f1(panel, runs, settings, "threshold", f"$\\epsilon$ = {epsilon:g}")
    legend_below(figure, panels)

    def claims(runs: Runs) -> list[Claim]:
        pem, *others = (float(runs[SearchSetting(DATA, m, 2.0, 64, 0.023)][:, F1].mean()) for m in _BY_SHARE)
        return [Claim("eps = 2, share 0.023: F1 of PEM to the best other", ratio(pem, max(others)), above=1.0)]

    return score_cells(context, runs, [("F1", F1)]) + judged(claims, runs), figure


@reproduction("dissertation-figure-4.5", title="Divided people, and the step of PEM: F1 by epsilon", repeats=10)
def figure_4_5(context: Context) -> Reproduced:
    """Panels (a) and (b): splitting epsilon beside dividing people, and the number of bits that a group adds."""
    divided = [SearchSetting(DATA, method, epsilon, _K) for epsilon in EPSILONS for method in _DIVIDED]
    methods: dict[str, Method] = {f"step {step}": stepped(step) for step in STEPS}
    steps = [SearchSetting(DATA, method, epsilon, _K) for epsilon in EPSILONS for method in methods]
    runs = sweep(context, [*divided, *steps], methods={**METHODS, **methods})
    figure, panels = canvas(1, 2, width=5.0)
    _draw_f1(panels[0], runs, divided, "epsilon", "divided people")
    for method in methods:
        means = [float(runs[SearchSetting(DATA, method, epsilon, _K)][:, F1].mean()) for epsilon in EPSILONS]
        panels[1].plot(EPSILONS, means, marker="o", markersize=4, label=method)
    finish(panels[1], "$\\epsilon$", "F1", "bits added by each group of PEM", log="")
    panels[1].legend(fontsize=8, frameon=False)
    legend_below(figure, panels[:1], columns=5)
    return score_cells(context, runs, [("F1", F1)]) + judged(_claims_of_4_5, runs), figure


@reproduction("dissertation-figure-4.6", title="Squared error of the counts of what was found, by epsilon", repeats=10)
def figure_4_6(context: Context) -> Reproduced:
    """The mean over the true top 16 that were found; runs that found none of them are left out."""
    names = ("PEM", "PEM1", "HASH", "SPM")
    settings = [SearchSetting(DATA, method, epsilon, _K) for epsilon in EPSILONS[2:] for method in names]
    runs = sweep(context, settings)
    figure, panels = canvas()
    draw_settings(panels[0], runs, "epsilon", ERROR)
    finish(panels[0], "$\\epsilon$", "squared error of the counts", log="y" if panels[0].get_lines() else "")
    legend_below(figure, panels)
    n = context.size(1_000_000)

    def claims(runs: Runs) -> list[Claim]:
        error = {m: mean_and_deviation(runs[SearchSetting(DATA, m, 4.0, _K)][:, ERROR])[0] for m in names}
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

    return score_cells(context, runs, [("squared error", ERROR)]) + judged(claims, runs), figure


def stepped(step: int) -> Method:
    """PEM in which each group adds `step` bits to the prefix, the first group to log2(k) bits.

    Example:
        >>> import numpy as np
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


def _draw_f1(panel: Axes, runs: Runs, settings: Iterable[SearchSetting], along: str, title: str) -> None:
    draw_settings(panel, {setting: runs[setting] for setting in settings}, along, F1)
    finish(panel, "$\\epsilon$" if along == "epsilon" else "share", "F1", title, log="")


def _claims_of_4_5(runs: Runs) -> list[Claim]:
    def f1(method: str, epsilon: float) -> float:
        return float(runs[SearchSetting(DATA, method, epsilon, _K)][:, F1].mean())

    return [
        Claim("eps = 1.2: F1 of HASH", f1("HASH", 1.2), "less than 0.2", below=0.2),
        Claim("eps = 1.2: F1 of HASH, divided", f1("HASH, divided", 1.2), "nearly 0.8", above=0.6, below=0.9),
        Claim("eps = 0.9: F1 at step 2", f1("step 2", 0.9), 0.4, above=0.3, below=0.5),
        Claim("eps = 0.9: F1 at step 10", f1("step 10", 0.9), 0.8, above=0.7, below=0.9),
        Claim("eps = 0.9: F1 at step 10 to step 1", ratio(f1("step 10", 0.9), f1("step 1", 0.9)), above=1.0),
    ]
