"""Figures 7.5 to 7.7: sums over boxes of two and three dimensions, by epsilon, number of people and volume."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.range_people import (
    MANY,
    OTHER_DATA,
    QUERIES,
    answers,
    census_people,
    normalised_errors,
    predicted_error,
    random_box,
)
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_methods, finish, legend_below

PLANES = ((256, 256), (1024, 64))
SPACE = (256, 256, 64)
EPSILONS = (0.5, 1.0, 2.0, 5.0)
SIZES = (100_000, 500_000, 1_000_000)
VOLUMES = (0.01, 0.1, 0.25, 0.5)
Point = tuple[str, str, float, float, float]
"""The dimensions, the method, epsilon, the number of people, and the volume."""
Runs = RunScores[Point]


@reproduction(
    "dissertation-figure-7.5",
    title="Sums over boxes of two dimensions: error by epsilon and by the number of people",
    repeats=2,
    needs=("census",),
)
def figure_7_5(context: Context) -> Reproduced:
    """MNAE of 30 random boxes of volume 0.25; HIO measured, HI and MG by their exact variances."""
    points = [(eps, float(MANY), 0.25) for eps in EPSILONS] + [(2.0, float(n), 0.25) for n in SIZES[:-1]]
    runs, cells = _measured(context, "figure 7.5", PLANES, ("MG", "HI", "HIO"), points)
    figure, panels = canvas(1, 4)
    for place, sizes in enumerate(PLANES):
        name, left, right = _name(sizes), panels[2 * place], panels[2 * place + 1]
        methods = ("MG", "HI", "HIO")
        draw_methods(left, EPSILONS, {m: [runs[name, m, e, float(MANY), 0.25] for e in EPSILONS] for m in methods})
        draw_methods(right, SIZES, {m: [runs[name, m, 2.0, float(n), 0.25] for n in SIZES] for m in methods})
        finish(left, "$\\epsilon$", "MNAE", name)
        finish(right, "n", "MNAE", f"{name}, $\\epsilon$ = 2", log="xy")
    legend_below(figure, panels)
    return cells + judged(lambda some: _claims(some, 1.0), runs), figure


@reproduction(
    "dissertation-figure-7.6",
    title="Sums over boxes of two dimensions: error by volume, eps = 2",
    repeats=2,
    needs=("census",),
)
def figure_7_6(context: Context) -> Reproduced:
    """MNAE of 30 random boxes; HIO measured, HI and MG by their exact variances."""
    return _by_volume(context, "figure 7.6", PLANES, ("MG", "HI", "HIO"), 1.0)


@reproduction(
    "dissertation-figure-7.7",
    title="Sums over boxes of three dimensions: error by volume, eps = 2",
    repeats=2,
    needs=("census",),
)
def figure_7_7(context: Context) -> Reproduced:
    """MNAE of 30 random boxes; HIO measured, MG by its exact variance (its cells are four million)."""
    return _by_volume(context, "figure 7.7", (SPACE,), ("MG", "HIO"), 3.0)


def _by_volume(
    context: Context, figure: str, all_sizes: Sequence[tuple[int, ...]], methods: Sequence[str], least: float
) -> Reproduced:
    points = [(2.0, float(MANY), volume) for volume in VOLUMES]
    runs, cells = _measured(context, figure, all_sizes, methods, points)
    drawing, panels = canvas(1, len(all_sizes))
    for panel, sizes in zip(panels, all_sizes, strict=True):
        name = _name(sizes)
        draw_methods(panel, VOLUMES, {m: [runs[name, m, 2.0, float(MANY), v] for v in VOLUMES] for m in methods})
        finish(panel, "volume", "MNAE", name, log="xy")
    legend_below(drawing, panels)
    return cells + judged(lambda some: _claims(some, least), runs), drawing


def _name(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _measured(
    context: Context,
    figure: str,
    all_sizes: Sequence[tuple[int, ...]],
    methods: Sequence[str],
    points: Sequence[tuple[float, float, float]],
) -> tuple[dict[Point, NDArray[np.float64]], list[Cell]]:
    runs: dict[Point, NDArray[np.float64]] = {}
    cells = []
    steps = [(sizes, point) for sizes in all_sizes for point in points]
    for sizes, (epsilon, n, volume) in context.track(steps, lambda step: f"{_name(step[0])} {step[1]}"):
        people = census_people(context, sizes, n=int(n))
        errors: dict[str, list[float]] = {method: [] for method in methods}
        for run in range(context.repeats):
            rng = context.rng.child(figure, _name(sizes), str((epsilon, n, volume)), run)
            queries = [random_box(people.dimensions, range(len(sizes)), volume, rng) for _ in range(QUERIES)]
            for method in methods:
                if method == "HIO":
                    estimates = answers(people, method, epsilon, queries, rng.child(method))
                    errors[method].append(normalised_errors(people, estimates, queries))
                else:
                    errors[method].append(predicted_error(people, method, epsilon, queries))
        for method in methods:
            runs[_name(sizes), method, epsilon, n, volume] = np.array(errors[method])
            how = f"measured, runs averaged: {context.repeats}" if method == "HIO" else "by the exact variance"
            row = f"{_name(sizes)}, eps = {epsilon:g}, n = {n:g}, volume = {volume:g}"
            note = f"{how}; {QUERIES} queries a run; {OTHER_DATA}"
            cells.append(Cell(row, f"{method}, MNAE", None, float(np.mean(errors[method])), note))
    return runs, cells


def _claims(runs: Runs, least: float) -> list[Claim]:
    """MG errs more than HIO above a volume of 0.01, and in three dimensions at least 3 times as much from 0.5 on."""
    claims = []
    for (sizes, method, epsilon, n, volume), errors in runs.items():
        if method == "MG" and volume > 0.01 and (least == 1.0 or volume >= 0.5):
            worse = ratio(float(errors.mean()), float(runs[sizes, "HIO", epsilon, n, volume].mean()))
            words = "much worse" if least == 1.0 else "at least 3"
            where = f"{sizes}, eps = {epsilon:g}, n = {n:g}, volume {volume:g}"
            claims.append(Claim(f"{where}: MNAE, MG to HIO", worse, words, above=least))
    return claims
