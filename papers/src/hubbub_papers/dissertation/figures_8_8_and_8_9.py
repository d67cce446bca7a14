"""Figures 8.8 and 8.9: queries of fixed sets, and choosing the method for them on synthetic data."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency import choose_method, norm_sub, power_ns
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub_papers.claims import Claim, judged, means
from hubbub_papers.dissertation.postprocessing import (
    EPSILONS,
    KEYS,
    LEFT,
    OTHER_DATA,
    KnownPeople,
    answers,
    draw_rows,
    emoji_population,
    estimated,
    squared_error,
)
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_lines, finish, legend_below

Floats = NDArray[np.float64]
Setting = tuple[str, float]  # method, epsilon
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
    "dissertation-figure-8.8",
    title="MSE of fixed set queries by category, Emoji, eps 0.2 to 4",
    repeats=30,
    needs=("emoji",),
)
def figure_8_8(context: Context) -> Reproduced:
    """The share of each category of emoji."""
    people = emoji_population(context)
    queries = _categories(people)

    def run_once(epsilon: float, run: int) -> dict[Setting, float]:
        errors = _true_errors(context, people, queries, epsilon, run)
        return {(method, epsilon): error for method, error in errors.items()}

    errors = context.measure(EPSILONS, run_once, "eps = {:g}".format)
    rows = {"Emoji by category": {method: [errors[method, epsilon] for epsilon in EPSILONS] for method in KEYS}}
    figure = draw_rows(EPSILONS, rows, labels=("$\\epsilon$", "MSE"), width=5)
    note = f"runs averaged: {context.repeats} (the paper: 30); {NOTE}"
    cells = [Cell(f"eps = {e:g}", method, None, mean, note) for (method, e), mean in means(errors).items()]
    size = Cell("mean items a set", "data", 10.4, float(queries.sum() / len(queries)), NOTE)
    return [*cells, size, *judged(_claims, errors)], figure


def _claims(errors: RunScores[Setting]) -> list[Claim]:
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
    "dissertation-figure-8.9",
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
        Claim("fitted by PowerNS: how often PowerNS is chosen, over eps", own, paper=1.0, above=0.9, note=NOTE),
    ]
    return cells + [claim.cell() for claim in claims], figure
