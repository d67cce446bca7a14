"""Figures 8.6 and 8.7: the share of a random set of values, large sets and small ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hubbub.random.source import Random
from hubbub_papers.claims import Claim, judged, means
from hubbub_papers.dissertation.postprocessing import (
    KEYS,
    OTHER_DATA,
    KnownPeople,
    answers,
    data_note,
    draw_rows,
    emoji_population,
    estimated,
    zipf_population,
)
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.result import joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON = 1.0
SETS = 30  # random sets a run and size
WIDE = (10, 20, 30, 40, 50, 60, 70, 80, 90)
NARROW = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
NORMED = ("Norm", "Norm-Sub", "MLE-Apx", "Norm-Cut", "PowerNS")
FREE = ("Base", "Base-Pos", "Post-Pos", "Base-Cut", "Power")
DATA = {"Zipf": "the paper's own distribution", "Emoji": OTHER_DATA}
Floats = NDArray[np.float64]
Setting = tuple[str, str, int]  # population, method, rho


def random_sets(domain: int, percent: int, sets: int, rng: Random) -> Floats:
    """Uniformly random sets that hold this percentage of the domain: a row of zeros and ones each."""
    rows = np.zeros((sets, domain))
    for row in rows:
        row[rng.permutation(domain)[: max(1, round(domain * percent / 100))]] = 1
    return rows


def _measure(context: Context, percents: tuple[int, ...]) -> tuple[dict[Setting, Floats], Figure]:
    both = (zipf_population(context), emoji_population(context))

    def run_once(people: KnownPeople, run: int) -> dict[Setting, float]:
        rng = context.rng.child("figures 8.6 and 8.7", people.name, run)
        estimate = estimated(people, EPSILON, rng)
        queries = np.concatenate([random_sets(people.domain, percent, SETS, rng) for percent in percents])
        truth = queries @ people.truth
        return {
            (people.name, method, percent): float(error)
            for method, results in answers(estimate, queries).items()
            for percent, error in zip(
                percents, ((results - truth) ** 2).reshape(len(percents), SETS).mean(axis=1), strict=True
            )
        }

    errors = context.measure(both, run_once, lambda people: people.name)
    rows = {p.name: {m: [errors[p.name, m, percent] for percent in percents] for m in KEYS} for p in both}
    return errors, draw_rows(percents, rows, labels=("$\\rho$: percent of the domain in the set", "MSE"))


def _cells(context: Context, errors: RunScores[Setting]) -> list[Cell]:
    runs = f"{SETS} random sets, {context.repeats} runs (the paper: 30)"
    return [
        Cell(f"{name}, rho = {percent}", method, None, mean, joined(runs, data_note(name)))
        for (name, method, percent), mean in means(errors).items()
    ]


def _means_on(population: str, errors: RunScores[Setting]) -> dict[tuple[str, int], float]:
    """The mean errors on one population, by method and rho."""
    return {(method, percent): mean for (name, method, percent), mean in means(errors).items() if name == population}


@reproduction(
    "dissertation-figure-8.6",
    title="MSE of set-value estimation, rho 10 to 90, eps = 1",
    repeats=30,
    needs=("emoji",),
)
def figure_8_6(context: Context) -> Reproduced:
    """Sets of 10 to 90 percent of the domain."""
    errors, figure = _measure(context, WIDE)
    return _cells(context, errors) + judged(_wide_claims, errors), figure


def _wide_claims(errors: RunScores[Setting]) -> list[Claim]:
    claims = []
    for name, other in DATA.items():
        mean = _means_on(name, errors)
        ahead = min(mean[m, 90] for m in FREE) / mean["PowerNS", 90]
        logs = {m: np.log([mean[m, r] for r in WIDE]) for m in KEYS}
        rival = min((m for m in KEYS if m != "PowerNS"), key=lambda m: logs[m].mean())
        lead = float(np.exp((logs["PowerNS"] - logs[rival]).mean()))
        pos, post, cut = (
            mean[m, r] / mean["Base", r] for m, r in (("Base-Pos", 50), ("Post-Pos", 10), ("Base-Cut", 50))
        )
        statement = f"{name}, rho = 90: MSE of the best method without sum 1, to PowerNS"
        claims += [
            Claim(statement, ahead, paper="at least 100", above=100, note=other),
            Claim(f"{name}, rho = 50: MSE, Base-Pos to Base", pos, above=1, note=other),
            Claim(f"{name}, rho = 10: MSE, Post-Pos to Base", post, below=1, note=other),
            Claim(f"{name}, rho = 50: MSE, Base-Cut to Base", cut, below=1, note=other),
            Claim(f"{name}: MSE, PowerNS to the next best", lead, below=1, note=f"{rival}; mean over rho; {other}"),
        ]
        for method in NORMED:
            even = mean[method, 10] / mean[method, 90]
            statement = f"{name}: {method} is symmetric: MSE at rho 10 to rho 90"
            claims.append(Claim(statement, even, paper=1.0, above=0.5, below=2, note=other))
    return claims


@reproduction(
    "dissertation-figure-8.7",
    title="MSE of set-value estimation, rho 1 to 10, eps = 1",
    repeats=30,
    needs=("emoji",),
)
def figure_8_7(context: Context) -> Reproduced:
    """Sets of 1 to 10 percent of the domain."""
    errors, figure = _measure(context, NARROW)
    return _cells(context, errors) + judged(_narrow_claims, errors), figure


def _narrow_claims(errors: RunScores[Setting]) -> list[Claim]:
    claims = []
    for name, other in DATA.items():
        mean = _means_on(name, errors)
        growth = {m: mean[m, 10] / mean[m, 1] for m in KEYS}
        least = min(growth, key=lambda m: growth[m])
        cut = max(mean["Norm-Cut", r] / mean["Base-Cut", r] for r in NARROW if r >= 2)
        worst = min(mean["Norm-Mul", 10] / mean[m, 10] for m in NORMED)
        claims += [
            Claim(f"{name}: MSE at rho 10 to rho 1, least", growth[least], above=1, note=f"{least}; {other}"),
            Claim(f"{name}, rho of at least 2: MSE, Norm-Cut to Base-Cut, largest", cut, below=1, note=other),
            Claim(f"{name}, rho = 10: MSE, Norm-Mul to the next worst of sum 1", worst, above=1, note=other),
        ]
    return claims
