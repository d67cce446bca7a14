"""Figures 6 and 12: the mean stock move of each of 32 days, from one ternary report per device, without a tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hubbub.data.trips import NOT_STOCK, stock_moves
from hubbub.mechanisms.ternary.vectors import Ternary
from hubbub.simulate.devices import RESAMPLED
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.result import Claim, joined
from hubbub_papers.sparse import METHODS as KNOWN
from hubbub_papers.sparse import PeopleKey, average, look, sweep_people
from hubbub_papers.study import Panel, Study

__all__ = ["EPSILONS", "METHODS", "S", "figure_6", "figure_12", "first_moves"]

S = 6
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0)
METHODS = ("PCKV-GRR", "PCKV-AGRR", "PCKV-UE", "EFMRTT", "ToPL", "DDRM", "ExSub", "NetSub")
"""The methods that can report day by day, according to the paper."""
Runs = RunScores[PeopleKey]


@dataclass(frozen=True)
class CutWindows:
    """Windows cut to their first moves, the TVE of the means that cutting causes, and the share of moves lost."""

    people: Ternary
    cost: float
    lost: float


def first_moves(windows: Ternary, most: int) -> CutWindows:
    """Cut every window to its first `most` moves: a device that has reported as many stays silent."""
    cut = Ternary(windows.entries[:, :most], windows.dimension)
    all_moves, left = ((batch.entries >= 0).sum() for batch in (windows, cut))
    return CutWindows(cut, float(np.abs(cut.means() - windows.means()).sum()), float(1 - left / all_moves))


@reproduction(
    "wang-2023-sao2-figure-6",
    title="TVE of the means of stock moves over 32 days, s = 6",
    repeats=10,
    needs=("stocks",),
)
def figure_6(context: Context) -> Reproduced:
    """The sum of the absolute errors of 32 days' means."""
    return _compare(context, "mean_tve", "TVE")


@reproduction(
    "wang-2023-sao2-figure-12",
    title="MAE of the means of stock moves over 32 days, s = 6",
    repeats=10,
    needs=("stocks",),
)
def figure_12(context: Context) -> Reproduced:
    """The largest of the same errors."""
    return _compare(context, "mean_mae", "MAE")


def _compare(context: Context, field: str, metric: str) -> Reproduced:
    many = context.size(RESAMPLED)
    windows = {"as it is": stock_moves(), f"resampled to {many:,}": stock_moves(many, context.rng.child("stock moves"))}
    records = {who: first_moves(batch, S) for who, batch in windows.items()}
    people = {who: (record.people, S) for who, record in records.items()}
    runs = sweep_people(context, "stock", people, EPSILONS, METHODS)

    def error(who: str, method: str, epsilon: float) -> float:
        return average(runs, (who, epsilon, method), field)

    cells, panels = [], []
    for who, record in records.items():
        title = f"{len(record.people):,} windows of 5 stocks, {who}"
        panels.append(Panel(title, EPSILONS, error, y=metric, log="xy", given=(who,)))
        cut = f"only the first {S} moves: {record.lost:.0%} are lost, a TVE of {record.cost:.3g} that is not in these"
        label = f"{NOT_STOCK}: {len(record.people):,} windows, {who}"
        cells += [
            Cell(
                f"{who}, eps = {epsilon:g}: {metric}",
                method,
                None,
                average(runs, (who, epsilon, method), field),
                joined(label, cut, f"runs: {context.repeats}", KNOWN[method].note),
            )
            for epsilon in EPSILONS
            for method in METHODS
        ]
    claims = partial(_claims, populations=list(records), field=field, metric=metric)
    return Study(runs, cells, METHODS, panels, claims, look_of=look).reproduced()


def _claims(runs: Runs, populations: Sequence[str], field: str, metric: str) -> list[Claim]:
    claims = []
    for who in populations:
        leads = [
            1 - average(runs, (who, e, "ExSub"), field) / min(average(runs, (who, e, m), field) for m in METHODS[:-2])
            for e in EPSILONS
        ]
        statement = f"ExSub beats the best of the others by about 30%, {metric}, {who}"
        note = f"mean over eps, from {min(leads):.0%} to {max(leads):.0%}"
        claims.append(Claim(statement, float(np.mean(leads)), paper=0.3, above=0.2, below=0.5, note=note))
    return claims
