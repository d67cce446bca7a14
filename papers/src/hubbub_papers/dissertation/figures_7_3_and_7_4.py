"""Figures 7.3 and 7.4: sums over ranges of one dimension, by volume, by the number of people, and by epsilon."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.range_people import (
    CONSISTENT,
    OTHER_DATA,
    QUERIES,
    MeasuredPeople,
    adult_people,
    answers,
    census_people,
    normalised_errors,
    predicted_error,
    random_box,
)
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_methods, finish, legend_below

DOMAIN = 1024
METHODS = ("MG", "HI", "HIO", CONSISTENT)
VOLUMES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.8)
SIZES = (100_000, 200_000, 500_000, 2_000_000, 3_000_000)
EPSILONS = (0.5, 1.0, 2.0, 5.0)
Key = tuple[str, str, float]  # people, method, and the value on the axis
Runs = RunScores[Key]


@reproduction(
    "dissertation-figure-7.3",
    title="Sums over ranges of one dimension: error by volume and by the number of people, eps = 2",
    repeats=5,
    needs=("adult", "census"),
)
def figure_7_3(context: Context) -> Reproduced:
    """MNAE of 30 random ranges of a domain of 1024; consistency is ours."""
    crowds = {"Adult": adult_people(context, DOMAIN), "census": census_people(context, [DOMAIN])}
    steps: list[tuple[Key, Callable[[], MeasuredPeople], float]] = [
        ((name, method, volume), lambda who=who: who, volume)  # type: ignore[misc]
        for name, who in crowds.items()
        for method in METHODS
        for volume in VOLUMES
    ]
    steps += [
        (("census, n", method, float(n)), lambda n=n: census_people(context, [DOMAIN], n=n), 0.25)  # type: ignore[misc]
        for n in SIZES
        for method in METHODS
    ]
    runs, cells = _measured(context, "figure 7.3", [(key, who, volume, 2.0) for key, who, volume in steps])
    titles = {"Adult": "Adult", "census": "census, 1M", "census, n": "census, volume 0.25"}
    x = {"Adult": VOLUMES, "census": VOLUMES, "census, n": SIZES}
    figure, panels = canvas(1, 3)
    for panel, (name, title) in zip(panels, titles.items(), strict=True):
        draw_methods(panel, x[name], {method: [runs[name, method, float(at)] for at in x[name]] for method in METHODS})
        finish(panel, "n" if name == "census, n" else "volume", "MNAE", title, log="xy")
    legend_below(figure, panels)
    return cells + judged(_claims, runs), figure


@reproduction(
    "dissertation-figure-7.4",
    title="Sums over ranges of one dimension: error by epsilon",
    repeats=5,
    needs=("census",),
)
def figure_7_4(context: Context) -> Reproduced:
    """MNAE of 30 random ranges of volume 0.25 of a domain of 1024."""
    people = census_people(context, [DOMAIN])
    steps = [(("census", method, eps), lambda: people, 0.25, eps) for eps in EPSILONS for method in METHODS]
    runs, cells = _measured(context, "figure 7.4", steps)
    figure, (panel,) = canvas()
    draw_methods(panel, EPSILONS, {method: [runs["census", method, eps] for eps in EPSILONS] for method in METHODS})
    finish(panel, "$\\epsilon$", "MNAE", "census, 1M", log="y")
    panel.legend(frameon=False)
    return cells + judged(_claims_of_epsilon, runs), figure


def _measured(
    context: Context, figure: str, steps: Sequence[tuple[Key, Callable[[], MeasuredPeople], float, float]]
) -> tuple[dict[Key, NDArray[np.float64]], list[Cell]]:
    """The errors of each run, and cells with the mean error and, in the note, the error that the variance predicts."""
    runs, cells = {}, []
    for key, who, volume, epsilon in context.track(steps, lambda step: " ".join(map(str, step[0]))):
        people = who()
        errors = []
        for run in range(context.repeats):
            rng = context.rng.child(figure, key[0], str(key[2]), run)
            queries = [random_box(people.dimensions, [0], volume, rng) for _ in range(QUERIES)]
            estimates = answers(people, key[1], epsilon, queries, rng.child(key[1]))
            errors.append(normalised_errors(people, estimates, queries))
        runs[key] = np.array(errors)
        theory = predicted_error(people, key[1], epsilon, queries)
        note = f"exact variance: {theory:.3g}; runs averaged: {context.repeats}, {QUERIES} queries each"
        note += "" if key[0] == "Adult" else f"; {OTHER_DATA}"
        name = {"figure 7.4": "eps"}.get(figure, "n" if key[0] == "census, n" else "volume")
        cells.append(Cell(f"{key[0]}, {name} = {key[2]:g}", f"{key[1]}, MNAE", None, float(np.mean(errors)), note))
    return runs, cells


def _claims(runs: Runs) -> list[Claim]:
    def times(name: str, first: str, second: str, x: float) -> float:
        return ratio(float(runs[name, first, x].mean()), float(runs[name, second, x].mean()))

    return [
        Claim("volume 0.8, census: MNAE, MG to HIO", times("census", "MG", "HIO", 0.8), "about 3", above=2, below=6),
        Claim("volume 0.01, census: MNAE, MG to HIO", times("census", "MG", "HIO", 0.01), "MG is better", below=1),
        Claim("volume 0.25, 3M: MNAE, HI to HIO", times("census, n", "HI", "HIO", 3e6), "HIO always best", above=1),
        Claim("volume 0.25, 3M: MNAE, MG to HIO", times("census, n", "MG", "HIO", 3e6), "HIO always best", above=1),
        Claim("volume 0.5, census: MNAE, consistent to HIO", times("census", CONSISTENT, "HIO", 0.5), below=0.8),
    ]


def _claims_of_epsilon(runs: Runs) -> list[Claim]:
    claims = []
    for eps in EPSILONS:
        hio = float(runs["census", "HIO", eps].mean())
        for other in ("MG", "HI"):
            worse = ratio(float(runs["census", other, eps].mean()), hio)
            claims.append(Claim(f"eps = {eps:g}: MNAE, {other} to HIO", worse, "HIO performing the best", above=1))
    return claims
