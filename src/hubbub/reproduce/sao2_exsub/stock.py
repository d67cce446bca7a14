"""Figures 6 and 12: means of stock moves over 32 days, each day's from ternary reports without a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.ternary import Ternary
from hubbub.data.prices import NOT_STOCK, stock_moves
from hubbub.reproduce.claims import Claim, judged
from hubbub.reproduce.harness import Cell, Context, Reproduced, reproduction
from hubbub.reproduce.plots import canvas, finish, legend_below
from hubbub.reproduce.sparse.errors import Errors, measure
from hubbub.reproduce.sparse.methods import METHODS as KNOWN
from hubbub.reproduce.sparse.methods import look, mechanism
from hubbub.simulate.event_stream import RESAMPLED

__all__ = ["EPSILONS", "METHODS", "S", "figure_6", "figure_12", "first_moves"]

S = 6
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0)
METHODS = ("PCKV-GRR", "PCKV-AGRR", "PCKV-UE", "EFMRTT", "ToPL", "DDRM", "ExSub", "NetSub")
"""Those that can be said as the days go by, as the paper has it."""
Key = tuple[str, float, str]  # who, epsilon, method
Runs = Mapping[Key, NDArray[np.float64]]


@dataclass(frozen=True)
class Records:
    """Windows of moves, cut to the first so many, and what that alone costs."""

    people: Ternary
    cost: float
    lost: float


def first_moves(windows: Ternary, most: int) -> Records:
    """Every window's first moves, and no later ones: a device that has said so many stays silent.

    Example:
        >>> cut = first_moves(Ternary.dense([[1, -1, 1], [0, 1, 0]]), 2)
        >>> cut.people.means().tolist(), cut.cost, cut.lost
        ([0.5, 0.0, 0.0], 0.5, 0.25)
    """
    kept = Ternary(windows.entries[:, :most], windows.dimension)
    all_moves, left = ((batch.entries >= 0).sum() for batch in (windows, kept))
    return Records(kept, float(np.abs(kept.means() - windows.means()).sum()), float(1 - left / all_moves))


@reproduction(
    "sao2-figure-6", title="TVE of the means of stock moves over 32 days, s = 6", repeats=10, needs=("stocks",)
)
def figure_6(context: Context) -> Reproduced:
    """The sum of the absolute errors of 32 days' means."""
    return _compare(context, "mean_tve", "TVE")


@reproduction(
    "sao2-figure-12", title="MAE of the means of stock moves over 32 days, s = 6", repeats=10, needs=("stocks",)
)
def figure_12(context: Context) -> Reproduced:
    """The largest of the same errors."""
    return _compare(context, "mean_mae", "MAE")


def _compare(context: Context, what: str, metric: str) -> Reproduced:
    many = context.size(RESAMPLED)
    windows = {
        "as it is": stock_moves(),
        f"resampled to {many:,}": stock_moves(many, context.rng.child("stock moves")),
    }
    records = {who: first_moves(batch, S) for who, batch in windows.items()}
    runs = _sweep(context, records)
    figure, panels = canvas(1, len(records))
    for panel, (who, record) in zip(panels, records.items(), strict=True):
        for method in METHODS:
            panel.plot(EPSILONS, [_mean(runs, (who, e, method), what) for e in EPSILONS], **look(method))
        finish(panel, "$\\epsilon$", metric, f"{len(record.people):,} windows of 5 stocks, {who}", log="xy")
    legend_below(figure, panels)
    cells = []
    for who, record in records.items():
        cut = f"only the first {S} moves: {record.lost:.0%} are lost, a TVE of {record.cost:.3g} that is not in these"
        label = f"{NOT_STOCK}: {len(record.people):,} windows, {who}"
        cells += [
            Cell(
                f"{who}, eps = {epsilon:g}: {metric}",
                method,
                None,
                _mean(runs, (who, epsilon, method), what),
                "; ".join(filter(None, [label, cut, f"runs: {context.repeats}", KNOWN[method].note])),
            )
            for epsilon in EPSILONS
            for method in METHODS
        ]
    return cells + judged(lambda some: _claims(some, list(records), what, metric), runs), figure


def _sweep(context: Context, records: Mapping[str, Records]) -> dict[Key, NDArray[np.float64]]:
    plan = [(who, e, m, run) for who in records for e in EPSILONS for m in METHODS for run in range(context.repeats)]
    measured: dict[Key, list[Errors]] = {}
    for who, epsilon, method, run in context.track(plan, lambda p: f"{p[0]}, eps = {p[1]:g}, {p[2]}, run {p[3] + 1}"):
        people = records[who].people
        built = mechanism(method, epsilon, people.dimension, S, len(people))
        rng = context.rng.child("stock", who, str(epsilon), method, run)
        measured.setdefault((who, epsilon, method), []).append(measure(built, people, rng, exactly=False))
    return {key: np.array(rows) for key, rows in measured.items()}


def _mean(runs: Runs, key: Key, what: str) -> float:
    return float(runs[key][:, Errors._fields.index(what)].mean())


def _claims(runs: Runs, populations: Sequence[str], what: str, metric: str) -> list[Claim]:
    claims = []
    for who in populations:
        leads = [
            1 - _mean(runs, (who, e, "ExSub"), what) / min(_mean(runs, (who, e, m), what) for m in METHODS[:-2])
            for e in EPSILONS
        ]
        statement = f"ExSub beats the best of the others by about 30%, {metric}, {who}"
        note = f"mean over eps, from {min(leads):.0%} to {max(leads):.0%}; the bounds are ours"
        claims.append(Claim(statement, float(np.mean(leads)), paper=0.3, above=0.2, below=0.5, note=note))
    return claims
