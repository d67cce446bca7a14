"""Figures 4.2 to 4.6 and section 4.4: PEM and its rivals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.protocols.heavy_hitters.pem import sensitivity_threshold
from hubbub.protocols.heavy_hitters.prefixes import prefix_lengths, queries
from hubbub.rehearse.top import TopValues, find_top
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation, FoundValues
from hubbub_papers.baselines.heavy_hitters.prefixes import search_prefixes
from hubbub_papers.dissertation.chapter_4_methods import (
    DATA,
    DRAWN,
    ERROR,
    F1,
    HITS,
    METHODS,
    NCR,
    NEEDS,
    OTHER_DATA,
    Method,
    SearchSetting,
    exponential,
    pem_lengths,
    sweep,
)
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_methods, finish, legend_below
from hubbub_papers.result import Claim, joined, judged, ratio
from hubbub_papers.top_scores import hits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Runs = RunScores[SearchSetting]


def score_cells(context: Context, runs: Runs, scores: Sequence[tuple[str, int]]) -> list[Cell]:
    """The mean and deviation of some scores, by name and column, in each setting."""
    cells = []
    for setting, rows in runs.items():
        how = "its own sketch" if "TreeHist" in setting.method else DRAWN
        for name, column in scores:
            mean, deviation = mean_and_deviation(rows[:, column])
            note = joined(f"sd {deviation:.2g}", f"runs averaged: {context.repeats}", how, OTHER_DATA[setting.data])
            cells.append(Cell(str(setting), f"{setting.method}, {name}", None, mean, note))
    return cells


def mean_and_deviation(scores: NDArray[np.float64]) -> tuple[float, float]:
    """The mean and the standard deviation over the runs whose score is a number."""
    known = scores[np.isfinite(scores)]
    return (float(known.mean()), float(known.std())) if known.size else (float("nan"), float("nan"))


def draw_settings(panel: Axes, runs: Runs, along: str, column: int) -> None:
    """A line a method of one score, along one field of the settings; runs without a number are left out."""
    for method in dict.fromkeys(setting.method for setting in runs):
        points = [setting for setting in runs if setting.method == method]
        scores = [runs[point][:, column] for point in points]
        known = [score[np.isfinite(score)] for score in scores]
        draw_methods(panel, [getattr(point, along) for point in points], {method: known})


SHOWN = ("PEM", "PEM1", "HASH", "SPM", "PrivTrie", "TreeHist")
"""The methods of the figures, and TreeHist: HASH, SPM, PrivTrie and TreeHist split epsilon as published."""
EPSILONS_4_2 = (0.5, 1.0, 2.0, 3.0, 4.0)
KS = (8, 16, 32, 64)
_SCORES = (("F1", F1), ("NCR", NCR))


@reproduction(
    "wang-2021-analyzing-figure-4.2", title="F1 and NCR by epsilon, k = 16, 2^20 queries", repeats=10, needs=NEEDS
)
def figure_4_2(context: Context) -> Reproduced:
    """A column of panels a population, one panel a score."""
    settings = [
        SearchSetting(data, method, epsilon, 16) for data in DATA for epsilon in EPSILONS_4_2 for method in SHOWN
    ]
    runs = sweep(context, settings)
    return score_cells(context, runs, _SCORES) + judged(_by_epsilon, runs), _drawn(runs, "epsilon")


@reproduction("wang-2021-analyzing-figure-4.3", title="F1 and NCR by k, eps = 2, 2^20 queries", repeats=10, needs=NEEDS)
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


DATA_4_4 = "Exponential"
EPSILONS_4_4 = (0.5, 0.9, 1.2, 2.0, 3.0, 4.0)
THRESHOLDS = (0.015, 0.023, 0.03, 0.04)
STEPS = (1, 2, 4, 6, 8, 10)
_BY_SHARE = ("PEM", "PEM1", "HASH", "SPM")
_DIVIDED_4_4 = (
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
    "wang-2021-analyzing-figure-4.4",
    title="Values above a share: F1 by epsilon and by the share, exponential",
    repeats=10,
)
def figure_4_4(context: Context) -> Reproduced:
    """All methods keep at most 64 values whose share is estimated to be at least the threshold."""
    by_epsilon = [SearchSetting(DATA_4_4, m, e, 64, 0.023) for e in EPSILONS_4_4 for m in _BY_SHARE]
    by_share = {
        e: [SearchSetting(DATA_4_4, m, e, 64, share) for share in THRESHOLDS for m in _BY_SHARE] for e in (1.0, 2.0)
    }
    runs = sweep(context, list(dict.fromkeys([*by_epsilon, *by_share[1.0], *by_share[2.0]])))
    figure, panels = canvas(1, 3)
    _draw_f1(panels[0], runs, by_epsilon, "epsilon", "share 0.023")
    for panel, (epsilon, settings) in zip(panels[1:], by_share.items(), strict=True):
        _draw_f1(panel, runs, settings, "threshold", f"$\\epsilon$ = {epsilon:g}")
    legend_below(figure, panels)

    def claims(runs: Runs) -> list[Claim]:
        pem, *others = (float(runs[SearchSetting(DATA_4_4, m, 2.0, 64, 0.023)][:, F1].mean()) for m in _BY_SHARE)
        return [Claim("eps = 2, share 0.023: F1 of PEM to the best other", ratio(pem, max(others)), above=1.0)]

    return score_cells(context, runs, [("F1", F1)]) + judged(claims, runs), figure


@reproduction("wang-2021-analyzing-figure-4.5", title="Divided people, and the step of PEM: F1 by epsilon", repeats=10)
def figure_4_5(context: Context) -> Reproduced:
    """Splitting epsilon compared with dividing people, the bits that a group adds, and assumed distributions."""
    divided = [SearchSetting(DATA_4_4, method, epsilon, _K) for epsilon in EPSILONS_4_4 for method in _DIVIDED_4_4]
    by_step: dict[str, Method] = {f"step {step}": stepped(step) for step in STEPS}
    n = context.size(1_000_000)
    by_shares: dict[str, Method] = {f"PEM for {name}": optimised(shares, n) for name, shares in ASSUMED.items()}
    methods = by_step | by_shares
    steps = [SearchSetting(DATA_4_4, method, epsilon, _K) for epsilon in EPSILONS_4_4 for method in methods]
    runs = sweep(context, [*divided, *steps], methods={**METHODS, **methods})
    figure, panels = canvas(1, 3, width=5.0)
    _draw_f1(panels[0], runs, divided, "epsilon", "divided people")
    titles = {"bits added by each group of PEM": by_step, "the distribution that PEM assumes": by_shares}
    for panel, (title, some) in zip(panels[1:], titles.items(), strict=True):
        for method in some:
            means = [float(runs[SearchSetting(DATA_4_4, method, e, _K)][:, F1].mean()) for e in EPSILONS_4_4]
            panel.plot(EPSILONS_4_4, means, marker="o", markersize=4, label=method)
        finish(panel, "$\\epsilon$", "F1", title, log="")
        panel.legend(fontsize=8, frameon=False)
    legend_below(figure, panels[:1], columns=5)
    return score_cells(context, runs, [("F1", F1)]) + judged(_claims_of_4_5, runs), figure


@reproduction(
    "wang-2021-analyzing-figure-4.6", title="Squared error of the counts of what was found, by epsilon", repeats=10
)
def figure_4_6(context: Context) -> Reproduced:
    """The mean over the true top 16 that were found; runs that found none of them are left out."""
    names = ("PEM", "PEM1", "HASH", "SPM")
    settings = [SearchSetting(DATA_4_4, method, epsilon, _K) for epsilon in EPSILONS_4_4[2:] for method in names]
    runs = sweep(context, settings)
    figure, panels = canvas()
    draw_settings(panels[0], runs, "epsilon", ERROR)
    finish(panels[0], "$\\epsilon$", "squared error of the counts", log="y" if panels[0].get_lines() else "")
    legend_below(figure, panels)
    n = context.size(1_000_000)

    def claims(runs: Runs) -> list[Claim]:
        error = {m: mean_and_deviation(runs[SearchSetting(DATA_4_4, m, 4.0, _K)][:, ERROR])[0] for m in names}
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
    """PEM in which each group adds `step` bits to the prefix, the first group to log2(k) bits."""

    def run(population: BitPopulation, *, k: int, query_limit: int, **options: Any) -> FoundValues:
        first = math.ceil(math.log2(k))
        lengths = [*range(first + step, population.bits, step), population.bits]
        return search_prefixes(population, lengths, k=k, **options)

    return run


RANKS_ASSUMED = np.arange(1, 401)
ASSUMED = {
    "Zipf's law": 1 / RANKS_ASSUMED**1.5,
    "exponential shares": np.exp(-0.05 * RANKS_ASSUMED),
    "equal shares": np.ones(RANKS_ASSUMED.size),
}


def expected_found(shares: NDArray[np.float64], lengths: Sequence[int], k: int, epsilon: float, n: int) -> float:
    """How many of the k largest shares are expected above the threshold Psi of every group of PEM."""
    sigma, people = math.sqrt(4 * math.exp(epsilon)) / math.expm1(epsilon), max(1, n // len(lengths))
    top, kept = np.sort(shares / shares.sum())[::-1][:k], np.ones(k)
    for before, length in zip((0, *lengths), lengths, strict=False):
        candidates = (k if before else 1) * 2.0 ** (length - before)
        threshold = sensitivity_threshold(sigma, candidates, people)
        kept *= ndtr((top - threshold) * math.sqrt(people) / sigma)
    return float(kept.sum())


def optimised(shares: NDArray[np.float64], n: int) -> Method:
    """PEM with as many groups as find most where the largest shares are these.

    The text says that PEM is optimised for a distribution, and not what of it: the number of groups is our reading.
    """

    def run(population: BitPopulation, *, k: int, query_limit: int, epsilon: float, **options: Any) -> FoundValues:
        plans = [prefix_lengths(population.bits, k, groups) for groups in range(1, population.bits - int(math.log2(k)))]
        allowed = [lengths for lengths in plans if queries(lengths, k) <= query_limit]
        best = max(allowed, key=lambda lengths: expected_found(shares, lengths, k, epsilon, n))
        return search_prefixes(population, best, k=k, epsilon=epsilon, **options)

    return run


def _draw_f1(panel: Axes, runs: Runs, settings: Iterable[SearchSetting], along: str, title: str) -> None:
    draw_settings(panel, {setting: runs[setting] for setting in settings}, along, F1)
    finish(panel, "$\\epsilon$" if along == "epsilon" else "share", "F1", title, log="")


def _claims_of_4_5(runs: Runs) -> list[Claim]:
    def f1(method: str, epsilon: float) -> float:
        return float(runs[SearchSetting(DATA_4_4, method, epsilon, _K)][:, F1].mean())

    spread = [[f1(f"PEM for {name}", epsilon) for name in ASSUMED] for epsilon in EPSILONS_4_4]
    furthest = max(max(row) - min(row) for row in spread)
    return [
        Claim("F1 for assumed distributions, the largest difference", furthest, "very similar", below=0.1),
        Claim("eps = 1.2: F1 of HASH", f1("HASH", 1.2), "less than 0.2", below=0.2),
        Claim("eps = 1.2: F1 of HASH, divided", f1("HASH, divided", 1.2), "nearly 0.8", above=0.6, below=0.9),
        Claim("eps = 0.9: F1 at step 2", f1("step 2", 0.9), 0.4, above=0.3, below=0.5),
        Claim("eps = 0.9: F1 at step 10", f1("step 10", 0.9), 0.8, above=0.7, below=0.9),
        Claim("eps = 0.9: F1 at step 10 to step 1", ratio(f1("step 10", 0.9), f1("step 1", 0.9)), above=1.0),
    ]


SPLIT = ("PEM1, split", "HASH", "SPM", "PrivTrie")
"""The rivals as published: each person's epsilon is split. PrivTrie with the threshold that the chapter prints."""
_DIVIDED_METHODS = (
    "PEM1",
    "HASH, divided",
    "SPM, divided",
    "PrivTrie, divided",
    "PrivTrie, 4 sd, divided",
    "TreeHist, divided",
)
_MAIN = [SearchSetting("Exponential", method, 2.0, 32) for method in METHODS]
_EASY = SearchSetting("Exponential", "PEM", 4.0, 16)


@reproduction(
    "wang-2021-analyzing-section-4.4",
    title="PEM and its rivals, exponential population, m = 64, 2^20 queries",
    repeats=10,
)
def section_4_4(context: Context) -> Reproduced:
    """Means and deviations of runs, claims on them, and one run of PEM on real reports with its intervals."""
    runs = sweep(context, [*_MAIN, _EASY])
    cells = []
    for setting, rows in runs.items():
        note = f"runs averaged: {context.repeats}; {'its own sketch' if 'Tree' in setting.method else DRAWN}"
        for name, column in (("found", HITS), ("F1", F1), ("NCR", NCR)):
            scores = rows[:, column]
            row = f"{setting.method}, eps = {setting.epsilon:g}, k = {setting.k}"
            cells.append(Cell(row, name, None, float(scores.mean()), f"sd {scores.std():.2g}; {note}"))
    return cells + judged(_claims, runs) + _on_reports(context), None


def covered(top: TopValues, population: BitPopulation) -> tuple[int, int]:
    """The number of found values whose interval holds the true share, and the number of found values."""
    if top.stopped:
        return 0, 0
    shares = dict(zip(map(int, population.values), (population.counts / population.n).tolist(), strict=True))
    truth = np.array([shares.get(int(value), 0.0) for value in top.values])
    low, high = top.estimate.interval()
    return int(((low <= truth) & (truth <= high)).sum()), len(truth)


def _on_reports(context: Context) -> list[Cell]:
    rng = context.rng.child("section 4.4", "reports")
    population = exponential(context, rng)
    values_of_people = population.values[population.people]
    top = find_top(values_of_people, bits=64, k=32, epsilon=2.0, rng=rng)
    inside, number = covered(top, population)
    values = [] if top.stopped else [int(value) for value in top.values]
    note = "one run: every report made and every candidate's support counted"
    row = "PEM, eps = 2, k = 32, real reports"
    return [
        Cell(row, "found", None, float(hits(values, population.ranked(32))), note),
        Cell(row, "intervals that hold the truth", None, ratio(inside, number), f"{inside} of {number}; {note}"),
    ]


def _found(runs: Runs, method: str) -> float:
    return float(runs[SearchSetting("Exponential", method, 2.0, 32)][:, HITS].mean())


def _claims(runs: Runs) -> list[Claim]:
    pem = _found(runs, "PEM")
    best = max(SPLIT, key=lambda method: _found(runs, method))
    ahead = max(_DIVIDED_METHODS, key=lambda method: _found(runs, method))
    trie = "PrivTrie, 4 sd"
    note = (
        "its threshold at four deviations, which is not the printed one; asked over eight rounds of a thousand batches"
    )
    return [
        Claim("found of the top 32, PEM to the best published", ratio(pem, _found(runs, best)), above=1.5),
        Claim("found of the top 32, PEM to PEM1 as chapter 4 runs it", ratio(pem, _found(runs, "PEM1")), above=1.5),
        Claim("found of the top 32, PEM to the best divided", ratio(pem, _found(runs, ahead)), above=1.0),
        Claim("found of the top 32, PEM to PrivTrie, 4 sd", ratio(pem, _found(runs, trie)), above=1.0, note=note),
        Claim("F1 of PEM, eps = 4, k = 16", float(runs[_EASY][:, F1].mean()), above=0.9),
    ]
