"""Figures 8.1 to 8.3: estimates by rank; the populations, estimates and methods of chapter 8."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency import METHODS, answer
from hubbub.core.estimate import Estimate
from hubbub.data.counts import emoji
from hubbub.data.synthetic import zipf
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.random.source import Random
from hubbub.simulate.conversation import collect
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, draw_methods, finish, legend_below
from hubbub_papers.result import Claim, judged, ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

KEYS = {
    "Base": "base",
    "Base-Pos": "base-pos",
    "Post-Pos": "post-pos",
    "Norm": "norm",
    "Norm-Mul": "norm-mul",
    "Norm-Sub": "norm-sub",
    "MLE-Apx": "mle-apx",
    "Base-Cut": "base-cut",
    "Norm-Cut": "norm-cut",
    "Power": "power",
    "PowerNS": "power-ns",
}
"""The chapter's names of the methods, and their names in `hubbub.consistency.METHODS`."""

LEFT = ("Base", "Base-Pos", "Post-Pos", "Norm", "Norm-Mul", "Norm-Sub")
RIGHT = ("Norm-Sub", "MLE-Apx", "Base-Cut", "Norm-Cut", "Power", "PowerNS")
EPSILONS = (0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
OTHER_DATA = "other data: 969 emoji, 156,941 uses in tweets, for the paper's 1,573 and 884,427"


@dataclass(frozen=True, eq=False)
class KnownPeople:
    """People whose values are known.

    `values` has the code of each person, `groups` the category of each code, if there are categories.
    """

    name: str
    values: NDArray[np.int64]
    domain: int
    groups: NDArray[np.str_] | None = None

    @property
    def truth(self) -> Floats:
        """The true share of each code."""
        return np.bincount(self.values, minlength=self.domain) / self.values.size

    @property
    def ranked(self) -> NDArray[np.int64]:
        """The codes, most frequent first."""
        return np.argsort(-self.truth, kind="stable")


def zipf_population(context: Context, n: int = 1_000_000) -> KnownPeople:
    """The chapter's synthetic data: Zipf with s = 1.5, d = 1,024, n people; drawn once, not once a run."""
    size = context.size(n, least=1000)
    return KnownPeople("Zipf", zipf(size, 1024, 1.5, context.rng.child("Zipf population", n)), 1024)


def emoji_population(context: Context) -> KnownPeople:
    """Our emoji instead of the chapter's; scaled down, a sample of their uses."""
    uses = emoji()
    n = context.size(uses.n, least=1000)
    values = np.repeat(np.arange(len(uses)), uses.counts)
    if n < uses.n:
        values = values[context.rng.child("part of the emoji").permutation(uses.n)[:n]]
    return KnownPeople("Emoji", values, len(uses), uses.groups)


def estimated(population: KnownPeople, epsilon: float, rng: Random) -> Estimate:
    """The estimate of the population from one collection by OLH."""
    olh = OLH(epsilon=epsilon, domain=population.domain)
    return olh.estimate(collect(olh, population.values, rng))


def full_domain(estimate: Estimate) -> dict[str, Floats]:
    """The share of each value on its own, under each method."""
    return {name: METHODS[key].apply(estimate).value for name, key in KEYS.items()}


def answers(estimate: Estimate, queries: Floats) -> dict[str, Floats]:
    """The share of each set (a row of zeros and ones), under each method."""
    return {name: answer(estimate, queries, method=key).value for name, key in KEYS.items()}


def squared_error(shares: Floats, truth: Floats) -> float:
    """The mean squared error of estimated shares."""
    return float(((shares - truth) ** 2).mean())


def data_note(population: str) -> str:
    """What differs from the paper's data: nothing of the Zipf population."""
    return "" if population == "Zipf" else OTHER_DATA


def draw_rows(
    xs: Sequence[float],
    rows: Mapping[str, Mapping[str, Sequence[Floats]]],
    *,
    labels: tuple[str, str],
    log: str = "y",
    width: float = 4.6,
) -> Figure:
    """The chapter's layout: a row of two panels for each population, six methods in each panel.

    `rows` holds, by population and method, the runs at each x: their mean and standard deviation are drawn.
    """
    figure, panels = canvas(len(rows), 2, width=width)
    for panel, (name, methods) in zip(panels, product(rows, (LEFT, RIGHT)), strict=True):
        draw_methods(panel, xs, {method: rows[name][method] for method in methods})
        finish(panel, *labels, name, log=log)
    legend_below(figure, panels, columns=6)
    return figure


EPSILON = 1.0
SHOWN = tuple(name for name in KEYS if name != "Post-Pos")  # of single values, Post-Pos is the same as Base-Pos
RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_GROUND = "#0072b2"
_DOTS = "#009e73"


class RankedCounts(NamedTuple):
    """Counts by rank: the truth, the standard error of Base on paper, and each method's estimates, one row per run."""

    truth: Floats
    stderr: Floats
    counts: Mapping[str, Floats]

    @property
    def number(self) -> int:
        """The number of runs."""
        return len(self.counts["Base"])

    def mean(self, method: str) -> Floats:
        """The mean estimate at each rank."""
        return np.asarray(self.counts[method].mean(axis=0))

    def bias(self, method: str) -> Floats:
        """The mean estimate less the truth."""
        return self.mean(method) - self.truth

    def variance(self, method: str) -> Floats:
        """The variance over the runs."""
        return np.asarray(self.counts[method].var(axis=0, ddof=1))


def _ranked_counts(context: Context) -> RankedCounts:
    people = zipf_population(context)
    ranked, n = people.ranked, people.values.size
    rows: dict[str, list[Floats]] = {method: [] for method in SHOWN}
    runs = max(2, context.repeats)  # a variance takes two
    for run in context.track(range(runs), lambda run: f"run {run + 1} of {runs}"):
        shares = full_domain(estimated(people, EPSILON, context.rng.child("figures 8.1 to 8.3", run)))
        for method in SHOWN:
            rows[method].append(shares[method][ranked] * n)
    truth = people.truth[ranked]
    stderr = n * np.sqrt(OLH(epsilon=EPSILON, domain=people.domain).noise(n).variance(truth))
    return RankedCounts(truth * n, stderr, {method: np.array(row) for method, row in rows.items()})


def _grid(title: str) -> tuple[Figure, dict[str, Axes]]:
    figure, panels = canvas(2, 5, width=2.9, height=2.7)
    figure.suptitle(title, fontsize=11)
    return figure, dict(zip(SHOWN, panels, strict=True))


def _cells(runs: RankedCounts, row: str, curves: dict[str, Floats]) -> list[Cell]:
    note = f"Zipf s = 1.5, eps = 1; {runs.number} runs (the paper: 5,000)"
    return [
        Cell(f"{row}, rank {rank}", name, None, float(values[rank - 1]), note)
        for rank in RANKS
        for name, values in curves.items()
    ]


PROMISED = {
    "Base-Pos": ("Yes", "No"),
    "Post-Pos": ("Yes", "No"),
    "Base-Cut": ("Yes", "No"),
    "Norm": ("No", "Yes"),
    "Norm-Mul": ("Yes", "Yes"),
    "Norm-Cut": ("Yes", "Almost"),
    "Norm-Sub": ("Yes", "Yes"),
    "MLE-Apx": ("Yes", "Yes"),
    "Power": ("Yes", "No"),
    "PowerNS": ("Yes", "Yes"),
}
"""Whether the shares of a method are at least 0, and whether their sum is 1, as printed."""
_ROUNDING = 1e-9
_BOUNDS_8_1 = {"Yes": (-math.inf, _ROUNDING), "Almost": (-math.inf, 0.05), "No": (1e-4, math.inf)}


@reproduction(
    "wang-2021-analyzing-table-8.1", title="What each method keeps: shares of at least 0, their sum, their order"
)
def table_8_1(context: Context) -> Reproduced:
    """Zipf's data set, eps = 1, one collection. The table's complexities are not measured."""
    people = zipf_population(context)
    estimate = estimated(people, EPSILON, context.rng.child("table 8.1"))
    order, claims = np.argsort(estimate.value, kind="stable"), []
    for method, (positive, sums) in PROMISED.items():
        shares = full_domain(estimate)[method]
        off = abs(float(shares.sum()) - 1)
        fallen = max(0.0, float(-np.diff(shares[order]).min()))
        below = max(0.0, -float(shares.min()))
        claims += [
            Claim(f"{method}: non-negative, how far below 0", below, positive, *_BOUNDS_8_1[positive]),
            Claim(f"{method}: the sum is 1, how far off", off, sums, *_BOUNDS_8_1[sums]),
            Claim(f"{method}: the order is kept, the largest fall", fallen, "preserve", below=_ROUNDING),
        ]
    return [claim.cell() for claim in claims], None


@reproduction(
    "wang-2021-analyzing-figure-8.1", title="Mean estimates of the Zipf data set by rank, eps = 1", repeats=100
)
def figure_8_1(context: Context) -> Reproduced:
    """The true counts, and the mean over the runs of each method's estimates."""
    runs = _ranked_counts(context)
    figure, panels = _grid(f"Zipf, $\\epsilon$ = 1, mean of {runs.number} runs: dots; truth: line")
    rank = np.arange(1, runs.truth.size + 1)
    for method, panel in panels.items():
        panel.plot(rank, runs.mean(method), ".", color=_DOTS, markersize=2.5)
        panel.plot(rank, runs.truth, color=_GROUND, linewidth=1.2)
        finish(panel, "rank", "count", method, log="xy")
        panel.set_ylim(bottom=1, top=2 * runs.truth[0])
    return _cells(runs, "mean count", {"truth": runs.truth} | {m: runs.mean(m) for m in SHOWN}), figure


@reproduction(
    "wang-2021-analyzing-figure-8.2", title="Bias of count estimation for the Zipf data set, eps = 1", repeats=100
)
def figure_8_2(context: Context) -> Reproduced:
    """The mean estimate less the truth."""
    runs = _ranked_counts(context)
    figure, panels = _grid(f"Zipf, $\\epsilon$ = 1, bias of the count over {runs.number} runs")
    rank = np.arange(1, runs.truth.size + 1)
    bias = {method: runs.bias(method) for method in SHOWN}
    for method, panel in panels.items():
        panel.plot(rank, bias[method], ".", color=_DOTS, markersize=2.5)
        panel.axhline(0, color=_GROUND, linewidth=0.8)
        finish(panel, "rank", "bias (people)", method, log="x")
    return _cells(runs, "bias", bias) + judged(
        lambda counts: _bias_claims(runs._replace(counts=counts)), runs.counts
    ), figure


def _bias_claims(runs: RankedCounts) -> list[Claim]:
    bias = {method: runs.bias(method) for method in SHOWN}
    error = runs.stderr / math.sqrt(runs.number)  # of Base's mean
    claims = []
    for method in ("Base", "Norm"):
        size = math.sqrt(np.mean((bias[method] / error) ** 2))
        statement = f"{method} is unbiased: root mean square bias in standard errors"
        claims.append(Claim(statement, size, above=0.8, below=1.25, note="1 is what noise gives"))
    tail = slice(runs.truth.size // 2, None)
    claims += [
        Claim(f"{method}: bias of the rare half, people per value", float(bias[method][tail].mean()), above=0)
        for method in ("Base-Pos", "Norm-Sub", "Norm-Mul")
    ]
    claims += [
        Claim(f"{method}: bias of the top 10, people per value", float(bias[method][:10].mean()), below=0)
        for method in ("Norm-Sub", "Norm-Mul")
    ]
    even = ratio(bias["Norm-Sub"][:10].mean(), bias["Norm-Mul"][:10].mean())
    first = float(np.abs(bias["Base-Cut"] / error)[:5].mean())
    statement = "Base-Cut is unbiased for the first few: mean size in standard errors, top 5"
    claims += [
        Claim("bias of the top 10, Norm-Sub to Norm-Mul", even, below=1, note="more even"),
        Claim(statement, first, paper="unbiased", below=2, note="0.8 is what noise gives"),
    ]
    for method in ("Norm", "Norm-Mul", "Norm-Sub", "MLE-Apx", "PowerNS"):
        total = bias[method].sum() / runs.truth.sum()
        statement = f"{method}: sum of the biases, as a share of the population"
        claims.append(Claim(statement, total, paper=0.0, above=-1e-9, below=1e-9, note="Lemma 2"))
    return claims


@reproduction(
    "wang-2021-analyzing-figure-8.3", title="Variance of count estimation, Zipf data set, eps = 1", repeats=100
)
def figure_8_3(context: Context) -> Reproduced:
    """The variance of each estimated count over the runs, in units of the population."""
    runs = _ranked_counts(context)
    n = float(runs.truth.sum())
    spread = {method: runs.variance(method) / n for method in SHOWN}
    figure, panels = _grid(f"Zipf, $\\epsilon$ = 1, Var[c(i)]/n over {runs.number} runs")
    rank = np.arange(1, runs.truth.size + 1)
    for method, panel in panels.items():
        panel.plot(rank, spread[method], ".", color=_DOTS, markersize=2.5)
        finish(panel, "rank", "variance / n", method, log="x")
        panel.set_ylim(bottom=0)
    return _cells(runs, "Var[c(i)]/n", spread) + judged(
        lambda counts: _variance_claims(runs._replace(counts=counts)), runs.counts
    ), figure


def _variance_claims(runs: RankedCounts) -> list[Claim]:
    spread = {method: runs.variance(method) / runs.truth.sum() for method in SHOWN}
    base, norm = spread["Base"].mean(), spread["Norm"].mean()
    note = "Table 3.2's OLH at eps = 1; with g = 4 it is 3.69"
    claims = [
        Claim("Base: mean of Var[c(i)]/n", base, paper=3.68, above=3.3, below=4.1, note=note),
        Claim("Norm to Base, variance", ratio(norm, base), paper="slightly smaller", above=0.9, below=1),
    ]
    tail = slice(runs.truth.size // 2, None)
    for method in SHOWN:
        if method not in ("Base", "Norm"):
            drop = ratio(spread[method][tail].mean(), spread[method][:10].mean())
            note = f"the largest is at rank {int(spread[method].argmax()) + 1}"
            claims.append(Claim(f"{method}: variance of the rare half to that of the top 10", drop, below=1, note=note))
    return claims
