"""Figures 4.2 and 4.3: F1 and NCR of every method on every population, by epsilon and by k."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.heavy_data import DATA, NEEDS
from hubbub_papers.dissertation.heavy_methods import F1, NCR, SearchSetting, sweep
from hubbub_papers.dissertation.search_figures import Runs, draw_settings, score_cells
from hubbub_papers.harness import Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, finish, legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("PEM", "PEM1", "HASH", "SPM", "PrivTrie", "TreeHist")
"""The methods of the figures, and TreeHist: HASH, SPM, PrivTrie and TreeHist split epsilon as published."""
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0)
KS = (8, 16, 32, 64)
_SCORES = (("F1", F1), ("NCR", NCR))


@reproduction("dissertation-figure-4.2", title="F1 and NCR by epsilon, k = 16, 2^20 queries", repeats=10, needs=NEEDS)
def figure_4_2(context: Context) -> Reproduced:
    """A column of panels a population, one panel a score."""
    settings = [SearchSetting(data, method, epsilon, 16) for data in DATA for epsilon in EPSILONS for method in SHOWN]
    runs = sweep(context, settings)
    return score_cells(context, runs, _SCORES) + judged(_by_epsilon, runs), _drawn(runs, "epsilon")


@reproduction("dissertation-figure-4.3", title="F1 and NCR by k, eps = 2, 2^20 queries", repeats=10, needs=NEEDS)
def figure_4_3(context: Context) -> Reproduced:
    """A column of panels a population, one panel a score."""
    runs = sweep(context, [SearchSetting(data, method, 2.0, k) for data in DATA for k in KS for method in SHOWN])
    return score_cells(context, runs, _SCORES) + judged(_by_k, runs), _drawn(runs, "k")


def _drawn(runs: Runs, along: str) -> Figure:
    figure, panels = canvas(2, len(DATA), width=3.6, height=3.0)
    for panel, ((name, column), data) in zip(panels, product(_SCORES, DATA), strict=True):
        draw_settings(panel, {setting: rows for setting, rows in runs.items() if setting.data == data}, along, column)
        finish(panel, "$\\epsilon$" if along == "epsilon" else "k", name, data, log="")
    legend_below(figure, panels, columns=len(SHOWN))
    return figure


def _mean(runs: Runs, setting: SearchSetting) -> float:
    return float(runs[setting][:, F1].mean())


def _by_epsilon(runs: Runs) -> list[Claim]:
    claims = []
    for data in DATA:
        best = max(_mean(runs, SearchSetting(data, method, 2.0, 16)) for method in SHOWN[1:])
        pem = _mean(runs, SearchSetting(data, "PEM", 2.0, 16))
        claims.append(Claim(f"{data}, eps = 2: F1 of PEM to the best other", ratio(pem, best), above=1.0))
        claims.append(
            Claim(f"{data}, eps = 4: F1 of PEM", _mean(runs, SearchSetting(data, "PEM", 4.0, 16)), 0.9, above=0.8)
        )
    return claims


def _by_k(runs: Runs) -> list[Claim]:
    claims = []
    for data in DATA:
        pem = [_mean(runs, SearchSetting(data, "PEM", 2.0, k)) for k in KS]
        others = [max(_mean(runs, SearchSetting(data, method, 2.0, k)) for method in SHOWN[1:]) for k in KS]
        least = min(ratio(own, other) for own, other in zip(pem, others, strict=True))
        claims.append(Claim(f"{data}: F1 of PEM to the best other, least over k", least, above=1.0))
        claims.append(Claim(f"{data}: F1 of PEM at k = {KS[-1]} to k = {KS[0]}", ratio(pem[-1], pem[0]), below=1.0))
    return claims
