"""Figures 8.4 to 8.7: the errors of single values and of sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.random.source import Random
from hubbub_papers.dissertation.chapter_8_by_rank import (
    EPSILONS,
    KEYS,
    OTHER_DATA,
    KnownPeople,
    answers,
    data_note,
    draw_rows,
    emoji_population,
    estimated,
    full_domain,
    squared_error,
    zipf_population,
)
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.result import Claim, joined, judged, means

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ErrorSetting = tuple[str, str, float]  # population, method, epsilon


@reproduction(
    "wang-2021-analyzing-figure-8.4",
    title="MSE of full-domain estimation, eps 0.2 to 4, Zipf and Emoji",
    repeats=10,
    needs=("emoji",),
)
def figure_8_4(context: Context) -> Reproduced:
    """The mean over the domain of the squared error of a share."""
    populations = (zipf_population(context), emoji_population(context))

    def run_once(setting: tuple[KnownPeople, float], run: int) -> dict[ErrorSetting, float]:
        people, epsilon = setting
        estimate = estimated(people, epsilon, context.rng.child("figure 8.4", people.name, str(epsilon), run))
        shares = full_domain(estimate)
        return {(people.name, method, epsilon): squared_error(shares[method], people.truth) for method in KEYS}

    settings = [(people, epsilon) for people in populations for epsilon in EPSILONS]
    errors = context.measure(settings, run_once, lambda setting: f"{setting[0].name}, eps = {setting[1]:g}")
    rows = {p.name: {m: [errors[p.name, m, e] for e in EPSILONS] for m in KEYS} for p in populations}
    runs = f"runs averaged: {context.repeats} (the paper: 30)"
    cells = [
        Cell(f"{name}, eps = {e:g}", method, None, mean, joined(runs, data_note(name)))
        for (name, method, e), mean in means(errors).items()
    ]
    return cells + judged(_claims_8_4, errors), draw_rows(EPSILONS, rows, labels=("$\\epsilon$", "MSE"))


def _claims_8_4(errors: RunScores[ErrorSetting]) -> list[Claim]:
    claims = []
    for name, factor in (("Zipf", 10.0), ("Emoji", 100.0)):
        logs = {m: np.log([errors[name, m, e].mean() for e in EPSILONS]) for m in KEYS}

        def relative(a: str, b: str, logs: dict[str, NDArray[np.float64]] = logs) -> float:
            """The error of a to that of b, geometric mean over eps."""
            return float(np.exp((logs[a] - logs[b]).mean()))

        over = joined("geometric mean over eps", data_note(name))
        at_1 = np.exp((logs["Base"] - logs["Norm-Sub"])[EPSILONS.index(1.0)])
        gain, note = relative("Base", "Norm-Sub"), f"{at_1:.3g} at eps = 1; {over}"
        rival = min((m for m in KEYS if m != "PowerNS"), key=lambda m: logs[m].mean())
        fall = {m: np.exp(logs[m][0] - logs[m][-1]) for m in ("Norm-Mul", "Base")}
        alike = {m: relative(m, "Norm-Sub") for m in ("MLE-Apx", "Power", "PowerNS", "Base-Cut")}
        claims += [
            Claim(f"{name}: MSE, Base to Norm-Sub", gain, paper=factor, above=factor / 2, below=factor * 2, note=note),
            Claim(
                f"{name}: MSE, Norm to Base",
                relative("Norm", "Base"),
                paper="very close",
                above=0.9,
                below=1.1,
                note=over,
            ),
            Claim(
                f"{name}: MSE, Base-Pos to Base",
                relative("Base-Pos", "Base"),
                paper="around half",
                above=0.4,
                below=0.6,
                note=over,
            ),
            Claim(
                f"{name}: MSE, MLE-Apx to Norm-Sub",
                alike["MLE-Apx"],
                "almost exactly the same",
                above=0.9,
                below=1.1,
                note=over,
            ),
            Claim(
                f"{name}: MSE, PowerNS to the next best", relative("PowerNS", rival), below=1, note=f"{rival}; {over}"
            ),
            Claim(f"{name}: MSE falls slower with eps, Norm-Mul to Base", fall["Norm-Mul"] / fall["Base"], below=1),
        ]
        for method in ("Power", "PowerNS", "Base-Cut"):
            statement = f"{name}: MSE, {method} to Norm-Sub"
            claims.append(Claim(statement, alike[method], paper="very similarly", above=0.5, below=2, note=over))
    return claims


EPSILON = 1.0
OVER = "mean over n"
SIZES = tuple(200_000 * k for k in range(1, 11))
SizeSetting = tuple[str, int]  # method, n


def people_without(olh: OLH, error: float) -> float:
    """The number of reports that have this mean squared error without post-processing (Eq 3.2, averaged)."""
    return olh.variance(1, 1 / olh.size) / error


@reproduction(
    "wang-2021-analyzing-figure-8.5",
    title="People saved by post-processing: n against n', Zipf data set, eps = 1",
    repeats=10,
)
def figure_8_5(context: Context) -> Reproduced:
    """For each n, the n' whose analytical error is the error measured."""
    olh = OLH(epsilon=EPSILON, domain=1024)
    crowds = {context.size(n, least=1000): zipf_population(context, n) for n in SIZES}

    def run_once(n: int, run: int) -> dict[SizeSetting, float]:
        shares = full_domain(estimated(crowds[n], EPSILON, context.rng.child("figure 8.5", n, run)))
        truth = crowds[n].truth
        return {(method, n): people_without(olh, squared_error(shares[method], truth)) for method in KEYS}

    needed = context.measure(crowds, run_once, "n = {:,}".format)
    rows = {"Zipf": {method: [needed[method, n] for n in crowds] for method in KEYS}}
    figure = draw_rows(list(crowds), rows, labels=("n, with post-processing", "n', without"), log="", width=5)
    note = f"n'; runs averaged: {context.repeats} (the paper: 30)"
    cells = [Cell(f"n = {n:,}", method, None, mean, note) for (method, n), mean in means(needed).items()]
    return cells + judged(_claims_8_5, needed), figure


def _claims_8_5(needed: RunScores[SizeSetting]) -> list[Claim]:
    """`needed` holds the n' of each method and n, one a run."""
    sizes = sorted({n for _, n in needed})
    gain = {m: float(np.mean([needed[m, n].mean() / n for n in sizes])) for m in KEYS}
    saved = np.mean([1 - n / needed["PowerNS", n].mean() for n in sizes])
    rival = max((m for m in KEYS if m != "PowerNS"), key=lambda m: gain[m])
    claims = [Claim(f"{m}: n' to n", gain[m], paper=1.0, above=0.9, below=1.1, note=OVER) for m in ("Base", "Norm")]
    claims += [
        Claim("Norm-Mul: n' to n", gain["Norm-Mul"], below=1, note=OVER),
        Claim("PowerNS saves this part of the users", saved, paper=0.9, above=0.85, below=0.95, note=OVER),
        Claim("n', PowerNS to the next best", gain["PowerNS"] / gain[rival], above=1, note=f"{rival}; {OVER}"),
    ]
    for a, b in (("Base", "Norm"), ("Base-Pos", "Post-Pos"), ("Norm-Sub", "MLE-Apx")):
        claims.append(Claim(f"n', {b} to {a}", gain[b] / gain[a], paper="similar", above=0.9, below=1.1, note=OVER))
    return claims


SETS = 30  # random sets a run and size
WIDE = (10, 20, 30, 40, 50, 60, 70, 80, 90)
NARROW = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
NORMED = ("Norm", "Norm-Sub", "MLE-Apx", "Norm-Cut", "PowerNS")
FREE = ("Base", "Base-Pos", "Post-Pos", "Base-Cut", "Power")
DATA = {"Zipf": "the paper's own distribution", "Emoji": OTHER_DATA}
Floats = NDArray[np.float64]
SetSetting = tuple[str, str, int]  # population, method, rho


def random_sets(domain: int, percent: int, sets: int, rng: Random) -> Floats:
    """Uniformly random sets that hold this percentage of the domain: a row of zeros and ones each."""
    rows = np.zeros((sets, domain))
    for row in rows:
        row[rng.permutation(domain)[: max(1, round(domain * percent / 100))]] = 1
    return rows


def _measure(context: Context, percents: tuple[int, ...]) -> tuple[dict[SetSetting, Floats], Figure]:
    populations = (zipf_population(context), emoji_population(context))

    def run_once(people: KnownPeople, run: int) -> dict[SetSetting, float]:
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

    errors = context.measure(populations, run_once, lambda people: people.name)
    rows = {p.name: {m: [errors[p.name, m, percent] for percent in percents] for m in KEYS} for p in populations}
    return errors, draw_rows(percents, rows, labels=("$\\rho$: percent of the domain in the set", "MSE"))


def _cells(context: Context, errors: RunScores[SetSetting]) -> list[Cell]:
    runs = f"{SETS} random sets, {context.repeats} runs (the paper: 30)"
    return [
        Cell(f"{name}, rho = {percent}", method, None, mean, joined(runs, data_note(name)))
        for (name, method, percent), mean in means(errors).items()
    ]


def _means_on(population: str, errors: RunScores[SetSetting]) -> dict[tuple[str, int], float]:
    """The mean errors on one population, by method and rho."""
    return {(method, percent): mean for (name, method, percent), mean in means(errors).items() if name == population}


@reproduction(
    "wang-2021-analyzing-figure-8.6",
    title="MSE of set-value estimation, rho 10 to 90, eps = 1",
    repeats=30,
    needs=("emoji",),
)
def figure_8_6(context: Context) -> Reproduced:
    """Sets of 10 to 90 percent of the domain."""
    errors, figure = _measure(context, WIDE)
    return _cells(context, errors) + judged(_wide_claims, errors), figure


def _wide_claims(errors: RunScores[SetSetting]) -> list[Claim]:
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
            Claim(statement, ahead, paper="at least 2 orders of magnitude", above=100, note=other),
            Claim(f"{name}, rho = 50: MSE, Base-Pos to Base", pos, above=1, note=other),
            Claim(f"{name}, rho = 10: MSE, Post-Pos to Base", post, below=1, note=other),
            Claim(f"{name}, rho = 50: MSE, Base-Cut to Base", cut, below=1, note=other),
            Claim(f"{name}: MSE, PowerNS to the next best", lead, below=1, note=f"{rival}; mean over rho; {other}"),
        ]
        for method in NORMED:
            even = mean[method, 10] / mean[method, 90]
            statement = f"{name}: {method} is symmetric: MSE at rho 10 to rho 90"
            claims.append(Claim(statement, even, paper="symmetric", above=0.5, below=2, note=other))
    return claims


@reproduction(
    "wang-2021-analyzing-figure-8.7",
    title="MSE of set-value estimation, rho 1 to 10, eps = 1",
    repeats=30,
    needs=("emoji",),
)
def figure_8_7(context: Context) -> Reproduced:
    """Sets of 1 to 10 percent of the domain."""
    errors, figure = _measure(context, NARROW)
    return _cells(context, errors) + judged(_narrow_claims, errors), figure


def _narrow_claims(errors: RunScores[SetSetting]) -> list[Claim]:
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
