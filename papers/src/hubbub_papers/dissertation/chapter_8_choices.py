"""Figures 8.8 to 8.10: fixed sets, the choice of a method, and the most frequent values."""

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency import choose_method, norm_sub, power_ns
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub_papers.dissertation.chapter_8_by_rank import (
    EPSILONS,
    KEYS,
    LEFT,
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
from hubbub_papers.plots import canvas, draw_lines, finish, legend_below
from hubbub_papers.result import Claim, joined, judged, means

Floats = NDArray[np.float64]
FixedSetting = tuple[str, float]  # method, epsilon
SHOWN = ("Base", "Post-Pos", "Norm", "Norm-Sub", "Base-Cut", "Norm-Cut", "PowerNS")
BLOCKS = "the 26 Unicode blocks instead of the paper's 68 categories"
NOTE = f"{OTHER_DATA}; {BLOCKS}"
FITS = {"Norm-Sub": norm_sub, "PowerNS": power_ns}


def _categories(people: KnownPeople) -> Floats:
    assert people.groups is not None
    return np.array([people.groups == group for group in np.unique(people.groups)], dtype=np.float64)


def _true_errors(context: Context, people: KnownPeople, queries: Floats, epsilon: float, run: int) -> dict[str, float]:
    estimate = estimated(people, epsilon, context.rng.child("figure 8.8", str(epsilon), run))
    truth = queries @ people.truth
    return {method: squared_error(shares, truth) for method, shares in answers(estimate, queries).items()}


@reproduction(
    "wang-2021-analyzing-figure-8.8",
    title="MSE of fixed set queries by category, Emoji, eps 0.2 to 4",
    repeats=30,
    needs=("emoji",),
)
def figure_8_8(context: Context) -> Reproduced:
    """The share of each category of emoji."""
    people = emoji_population(context)
    queries = _categories(people)

    def run_once(epsilon: float, run: int) -> dict[FixedSetting, float]:
        errors = _true_errors(context, people, queries, epsilon, run)
        return {(method, epsilon): error for method, error in errors.items()}

    errors = context.measure(EPSILONS, run_once, "eps = {:g}".format)
    rows = {"Emoji by category": {method: [errors[method, epsilon] for epsilon in EPSILONS] for method in KEYS}}
    figure = draw_rows(EPSILONS, rows, labels=("$\\epsilon$", "MSE"), width=5)
    note = f"runs averaged: {context.repeats} (the paper: 30); {NOTE}"
    cells = [Cell(f"eps = {e:g}", method, None, mean, note) for (method, e), mean in means(errors).items()]
    size = Cell("mean items a set", "data", 10.4, float(queries.sum() / len(queries)), NOTE)
    return [*cells, size, *judged(_claims_8_8, errors)], figure


def _claims_8_8(errors: RunScores[FixedSetting]) -> list[Claim]:
    logs = {m: np.log([errors[m, e].mean() for e in EPSILONS if e < 3]).mean() for m in KEYS}
    rest = min((m for m in LEFT if m != "Post-Pos"), key=lambda m: logs[m])
    over = f"geometric mean over eps; {NOTE}"
    left, right = math.exp(logs["Post-Pos"] - logs[rest]), math.exp(logs["Norm-Cut"] - logs["Post-Pos"])
    statement = "eps below 3: MSE, Post-Pos to the best of the other five on the left"
    return [
        Claim(statement, left, below=1, note=f"{rest}; {over}"),
        Claim("eps below 3: MSE, Norm-Cut to Post-Pos", right, below=1, note=over),
    ]


@reproduction(
    "wang-2021-analyzing-figure-8.9",
    title="Choosing the method for fixed set queries on synthetic data, Emoji",
    repeats=10,
    needs=("emoji",),
)
def figure_8_9(context: Context) -> Reproduced:
    """The errors predicted on a synthetic population, which is fitted once by Norm-Sub and once by PowerNS."""
    people = emoji_population(context)
    queries = _categories(people)
    repetitions = max(2, context.repeats)
    predicted: dict[tuple[str, float], dict[str, float]] = {}
    chosen: dict[tuple[str, float], str] = {}
    true: dict[float, dict[str, float]] = {}
    names = {key: name for name, key in KEYS.items()}
    steps = [(epsilon, fit) for epsilon in EPSILONS for fit in FITS]
    for epsilon, fit in context.track(steps, lambda step: f"eps = {step[0]:g}, fitted by {step[1]}"):
        rng = context.rng.child("figure 8.9", str(epsilon))
        estimate = estimated(people, epsilon, rng)
        # `choose_method` fits its people by Norm-Sub, which leaves the consistent output of PowerNS unchanged.
        choice = choose_method(
            OLH(epsilon=epsilon, domain=people.domain), FITS[fit](estimate), queries, rng=rng, repetitions=repetitions
        )
        predicted[fit, epsilon] = {names[key]: error for key, error in choice.errors.items()}
        chosen[fit, epsilon] = names[choice.method]
        if epsilon not in true:
            runs = [_true_errors(context, people, queries, epsilon, run) for run in range(repetitions)]
            true[epsilon] = {method: float(np.mean([run[method] for run in runs])) for method in KEYS}
    figure, panels = canvas(1, 3, width=4.4, height=4)
    curves = [
        ("true data", true),
        *((f"synthetic, by {fit}", {e: predicted[fit, e] for e in EPSILONS}) for fit in FITS),
    ]
    for panel, (title, errors) in zip(panels, curves, strict=True):
        draw_lines(panel, EPSILONS, {method: [errors[epsilon][method] for epsilon in EPSILONS] for method in SHOWN})
        finish(panel, "$\\epsilon$", "MSE", title)
    legend_below(figure, panels, columns=7)
    cells = []
    cost: dict[tuple[str, float], float] = {}
    for (fit, epsilon), method in chosen.items():
        best = min(true[epsilon], key=lambda m, e=epsilon: true[e][m])  # type: ignore[misc]
        cost[fit, epsilon] = true[epsilon][method] / true[epsilon][best]
        row, note = f"eps = {epsilon:g}, fitted by {fit}", f"{repetitions} repetitions; {NOTE}"
        remark = f"chosen: {method}, truly best: {best}; {note}"
        cells.append(Cell(row, "MSE of the choice to the best's", None, cost[fit, epsilon], remark))
        cells += [
            Cell(row, f"{m}, foretold MSE", None, predicted[fit, epsilon][m], f"truly {true[epsilon][m]:.4g}; {note}")
            for m in KEYS
        ]
    quality = np.exp(np.mean([np.log(cost["Norm-Sub", e]) for e in EPSILONS]))
    own = float(np.mean([chosen["PowerNS", e] == "PowerNS" for e in EPSILONS]))
    over = f"geometric mean over eps; {NOTE}"
    statement = "fitted by Norm-Sub: MSE of the choice to the truly best's"
    claims = [
        Claim(statement, float(quality), paper="quite accurate", below=1.25, note=over),
        Claim(
            "fitted by PowerNS: how often PowerNS is chosen, over eps",
            own,
            paper="will be selected",
            above=0.9,
            note=NOTE,
        ),
    ]
    return cells + [claim.cell() for claim in claims], figure


EPSILON = 1.0
TOP = tuple(range(2, 33, 2))
TopSetting = tuple[str, str]  # population, method


@reproduction(
    "wang-2021-analyzing-figure-8.10",
    title="MSE of the k most frequent values, k 2 to 32, eps = 1",
    repeats=30,
    needs=("emoji",),
)
def figure_8_10(context: Context) -> Reproduced:
    """The squared error of the k truly most frequent values, which no method knows."""
    populations = (zipf_population(context), emoji_population(context))
    values_kept: dict[str, list[int]] = {people.name: [] for people in populations}

    def run_once(people: KnownPeople, run: int) -> dict[TopSetting, NDArray[np.float64]]:
        shares = full_domain(estimated(people, EPSILON, context.rng.child("figure 8.10", people.name, run)))
        values_kept[people.name].append(int((shares["Base-Cut"] > 0).sum()))
        top, truth = people.ranked[: TOP[-1]], people.truth
        return {
            (people.name, method): np.cumsum((shares[method][top] - truth[top]) ** 2) / np.arange(1, TOP[-1] + 1)
            for method in KEYS
        }

    errors = context.measure(populations, run_once, lambda people: people.name)
    rows = {p.name: {m: [errors[p.name, m][:, k - 1] for k in TOP] for m in KEYS} for p in populations}
    runs = f"runs averaged: {context.repeats} (the paper: 30)"
    cells = [
        Cell(f"{name}, k = {k}", method, None, float(row[:, k - 1].mean()), joined(runs, data_note(name)))
        for (name, method), row in errors.items()
        for k in TOP
    ]
    cells += [
        Cell(
            f"{name}: values that Base-Cut keeps",
            "all ranks",
            None,
            float(np.mean(number)),
            "of them about 2 by chance",
        )
        for name, number in values_kept.items()
    ]
    return cells + judged(_claims_8_10, errors), draw_rows(TOP, rows, labels=("k", "MSE"))


def _claims_8_10(errors: RunScores[TopSetting]) -> list[Claim]:
    """`errors` holds, by population and method, one row per run: the error of the k most frequent for k = 1, 2, ..."""
    return [
        claim
        for name in ("Zipf", "Emoji")
        for claim in _claims_on(name, {m: rows.mean(axis=0) for (n, m), rows in errors.items() if n == name})
    ]


def _claims_on(name: str, mean: dict[str, NDArray[np.float64]]) -> list[Claim]:
    other = OTHER_DATA if name == "Emoji" else "the paper's own distribution"
    over = f"mean over k; {other}"

    def relative(a: str, b: str, least: int = 2) -> float:
        return float((mean[a] / mean[b])[least - 1 :].mean())

    worst = min((mean["Norm-Mul"] / mean[m])[1:].min() for m in KEYS if m != "Norm-Mul")
    reliable = np.flatnonzero(mean["Base-Cut"] <= 1.1 * mean["Base"])
    note = f"the largest k at which Base-Cut's MSE is at most 1.1 times Base's; {other}"
    pair = relative("PowerNS", "Power")
    claims = [
        Claim(f"{name}: MSE, Norm-Mul to any other, least over k", worst, paper="at least 10", above=10, note=other),
        Claim(
            f"{name}: MSE, Norm to Base", relative("Norm", "Base"), paper="similarly", above=0.8, below=1.25, note=over
        ),
        Claim(f"{name}: MSE, Norm-Sub to Base", relative("Norm-Sub", "Base"), above=1, note=over),
        Claim(f"{name}: MSE, Norm-Cut to Base-Cut", relative("Norm-Cut", "Base-Cut"), below=1, note=over),
        Claim(f"{name}, k above 10: MSE, PowerNS to Base-Cut", relative("PowerNS", "Base-Cut", 11), above=1, note=over),
        Claim(f"{name}: MSE, PowerNS to Power", pair, paper="similar", above=0.5, below=2, note=over),
        Claim(
            f"{name}: values that can be reliably estimated",
            reliable[-1] + 1 if reliable.size else 0,
            paper=10.0,
            above=5,
            below=20,
            note=note,
        ),
    ]
    for method in ("Base-Cut", "Norm-Cut", "Power", "PowerNS"):
        growth = mean[method][31] / mean[method][1]
        claims.append(Claim(f"{name}: {method}, MSE at k = 32 to k = 2", growth, above=1, note=other))
    return claims
