"""Figures 6.4 and 6.5: the squared error of marginals by CALM and other methods, of binary and other attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.marginal_data import KnownRecords, census, top_items
from hubbub_papers.dissertation.marginal_runs import (
    METHODS,
    MOVED,
    RAW,
    RIVALS,
    MarginalRuns,
    MarginalSetting,
    measure_marginals,
)
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.plots import canvas, draw_methods, finish, legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0.2, 0.6, 1.0, 1.4, 2.0)
MOST_CLAIMED = 1.0  # claims are about epsilons up to this
ENDS = ("Uniform", "NoNoise")
Panel = tuple[KnownRecords, int, int, tuple[str, ...]]
"""People, how many of them, the number k of attributes of a marginal, and the methods that can be run there."""


def _binary(context: Context) -> list[Panel]:
    small, large = context.size(2**16, least=2000), context.size(2**18, least=4000)
    return [
        (top_items(8), small, 3, ("CALM", *RIVALS, *ENDS)),
        (top_items(16), small, 3, ("CALM", *RIVALS, *ENDS)),
        (top_items(32), small, 3, ("CALM", "AM", "FT", *ENDS)),
        (top_items(16), large, 6, ("CALM", "FC", "AM", "FT", *ENDS)),
        (top_items(32), large, 6, ("CALM", *ENDS)),
        (top_items(32), large, 8, ("CALM", *ENDS)),
    ]


def _others(context: Context) -> list[Panel]:
    eight_columns = (
        "age",
        "workclass",
        "education",
        "marital_status",
        "occupation",
        "relationship",
        "hours_per_week",
        "income",
    )
    n = context.size(2**16, least=2000)
    return [
        (census(3, eight_columns), n, 3, ("CALM", "FC", "AM", "FT", "BE", "EM", *ENDS)),
        (census(3), n, 3, ("CALM", "AM", "FT", *ENDS)),
    ]


@reproduction(
    "dissertation-figure-6.4",
    title="Squared error of k-way marginals of binary attributes, CALM and others",
    repeats=5,
    needs=("retail",),
)
def figure_6_4(context: Context) -> Reproduced:
    """Whether baskets hold the most bought items, in the place of POS and Kosarak."""
    return _compare(context, "figure 6.4", _binary(context), claims=True)


@reproduction(
    "dissertation-figure-6.5",
    title="Squared error of k-way marginals of attributes with more values, CALM and others",
    repeats=5,
    needs=("adult",),
)
def figure_6_5(context: Context) -> Reproduced:
    """Adult, with at most three values an attribute; the paper's census sample is not available."""
    return _compare(context, "figure 6.5", _others(context), claims=True)


def _compare(context: Context, name: str, panels: Sequence[Panel], *, claims: bool) -> Reproduced:
    settings = [
        (people, n, MarginalSetting(_title(people, n), method, k, epsilon))
        for people, n, k, methods in panels
        for epsilon in EPSILONS
        for method in methods
    ]
    runs = measure_marginals(context, name, settings)
    notes = {setting.people: people.note for people, _, setting in settings}
    cells = []
    for setting, rows in runs.items():
        for column, words in ((RAW, ""), (MOVED, ", moved to the simplex")):
            if column == RAW or setting.method in RIVALS:
                row = f"{setting.people}, k = {setting.k}, eps = {setting.epsilon:g}"
                note = f"{context.repeats} runs (the paper: 20), deviation {rows[:, column].std():.3g}"
                heading = f"{setting.method}{words}"
                mean = float(rows[:, column].mean())
                cells.append(Cell(row, heading, None, mean, f"{note}; {notes[setting.people]}"))
    if claims:
        cells += judged(lambda some: _claims(panels, some), runs)
    return cells, _draw(panels, runs)


def _title(people: KnownRecords, n: int) -> str:
    return f"{people.name}, n = {n:,}"


def _claims(panels: Sequence[Panel], runs: MarginalRuns) -> list[Claim]:
    claims = []
    for people, n, k, methods in panels:
        rivals = [method for method in methods if method in RIVALS]
        for epsilon in (e for e in EPSILONS if e <= MOST_CLAIMED):

            def mean(method: str, column: int, who: str = _title(people, n), k: int = k, at: float = epsilon) -> float:
                return float(runs[MarginalSetting(who, method, k, at)][:, column].mean())

            where = f"{_title(people, n)}, k = {k}, eps = {epsilon:g}"
            own = mean("CALM", RAW)
            claims.append(
                Claim(f"{where}: SSE, Uniform to CALM", ratio(mean("Uniform", RAW), own), above=1, note=people.note)
            )
            if rivals:
                printed = "one and two orders of magnitude" if "FT" in rivals else None
                for column, words in ((RAW, "as estimated"), (MOVED, "moved to the simplex")):
                    best = min(mean(method, column) for method in rivals)
                    statement = f"{where}: SSE, the best other {words} to CALM"
                    claims.append(Claim(statement, ratio(best, own), printed, above=5, note=people.note))
    return claims


def _draw(panels: Sequence[Panel], runs: MarginalRuns) -> Figure:
    figure, places = canvas(-(-len(panels) // 2), 2)
    for place, (people, n, k, methods) in zip(places, panels, strict=False):
        lines = {
            method: [runs[MarginalSetting(_title(people, n), method, k, e)][:, RAW] for e in EPSILONS]
            for method in METHODS
            if method in methods and method != "NoNoise"
        }
        draw_methods(place, EPSILONS, lines)
        finish(place, "$\\epsilon$", "SSE", f"{_title(people, n)}, k = {k}")
    legend_below(figure, places)
    return figure
