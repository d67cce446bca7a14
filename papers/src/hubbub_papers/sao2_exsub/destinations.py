"""Figures 7, 8, 13 and 14: the last destinations of aircraft, day by day and summed over days, by epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hubbub.protocols.sao2 import Sao2
from hubbub.simulate.devices import RESAMPLED
from hubbub_papers.change_runs import true_means
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.real_streams import CategoryStream, last_destinations
from hubbub_papers.result import Claim, joined
from hubbub_papers.sao2_exsub.online import NET, OURS, Runs, as_printed, average, expected_means, look, sweep
from hubbub_papers.study import Panel, Study

if TYPE_CHECKING:
    pass

__all__ = ["DAYS", "EPSILONS", "METHODS", "NOT_TRAJECTORY", "S", "figure_7", "figure_8", "figure_13", "figure_14"]

DAYS, S = 32, 8
"""The steps and changes of the paper; each of four moves is two changes."""
EPSILONS = (0.2, 0.5, 1.0, 2.0)
OTHERS = ("PCKV-GRR", "PCKV-UE", "EFMRTT", "ToPL", "DDRM")
METHODS = (*OTHERS, "ExSub", OURS, NET)
NOT_TRAJECTORY = "aircraft by their last destination, not the paper's TRAJECTORY"
_RANGE = (("prefix", "sums of days 1 to t"), ("range", "sums over all ranges of days"))


@reproduction(
    "wang-2023-sao2-figure-7",
    title="TVE of where aircraft went last, daily over 32 days, s = 8",
    repeats=3,
    needs=("flights",),
)
def figure_7(context: Context) -> Reproduced:
    """The sum of the absolute errors of all destinations and days."""
    return _compare(context, (("mean", "days"),), "TVE")


@reproduction(
    "wang-2023-sao2-figure-8",
    title="TVE of sums over days of where aircraft went last, 32 days, s = 8",
    repeats=3,
    needs=("flights",),
)
def figure_8(context: Context) -> Reproduced:
    """The same of sums from the first day on, and of sums over all ranges of days."""
    return _compare(context, _RANGE, "TVE")


@reproduction(
    "wang-2023-sao2-figure-13",
    title="MAE of sums over days of where aircraft went last, 32 days, s = 8",
    repeats=3,
    needs=("flights",),
)
def figure_13(context: Context) -> Reproduced:
    """The largest of the errors of Figure 8."""
    return _compare(context, _RANGE, "MAE")


@reproduction(
    "wang-2023-sao2-figure-14",
    title="MAE of where aircraft went last, daily over 32 days, s = 8",
    repeats=3,
    needs=("flights",),
)
def figure_14(context: Context) -> Reproduced:
    """The largest of the errors of Figure 7."""
    return _compare(context, (("mean", "days"),), "MAE")


def populations(context: Context) -> dict[str, CategoryStream]:
    """The aircraft as they are, and resampled to a number of devices comparable with the paper's."""
    destinations = last_destinations(days=DAYS)
    many = context.size(RESAMPLED)
    return {"as it is": destinations, f"resampled to {many:,}": destinations.resampled(many)}


def _plan(method: str, epsilon: float, dimension: int) -> Sao2:
    if method in (OURS, NET):
        mechanism = "ExSub" if method == OURS else "NetSub"
        return Sao2(epsilon=epsilon, dimension=dimension, steps=DAYS, changes=S, one=True, mechanism=mechanism)
    return as_printed(method, epsilon=epsilon, dimension=dimension, steps=DAYS, changes=S)


def clipping(plan: Sao2, stream: CategoryStream) -> float:
    """The TVE of days, without noise, that comes from devices with more moves than they may report."""
    return float(np.abs(expected_means(plan, stream) - true_means(stream, plan.steps, plan.dimension)).sum())


def _compare(context: Context, queries: Sequence[tuple[str, str]], metric: str) -> Reproduced:
    streams = populations(context)
    dimension = len(streams["as it is"].labels)
    plans = {(who, e, m): _plan(m, e, dimension) for who in streams for e in EPSILONS for m in METHODS}
    lost = {m: clipping(plans["as it is", 1.0, m], streams["as it is"]) for m in ("ExSub", OURS)}
    clipped = float(np.mean(streams["as it is"].moves() > S // 2))
    runs = sweep(context, plans, streams)
    cells = []
    for what, words in queries:
        for who, epsilon, method in plans:
            note = joined(
                f"{NOT_TRAJECTORY}: {streams[who].n:,} devices, {who}, {dimension} categories",
                f"{clipped:.0%} move more than {S // 2} times and are clipped: a TVE of days of "
                f"{lost[OURS if method in (OURS, NET) else 'ExSub']:.2g}, which is in these",
                _form(method),
                "" if what == "mean" else "sums are asked for at the end",
                f"runs: {context.repeats} (the paper: 100)",
            )
            ours = average(runs, (who, epsilon, method), f"{what}_{metric.lower()}")
            row = f"{words}, {who}, eps = {epsilon:g}: {metric}"
            cells.append(Cell(row, method, None, ours, note))

    def error(who: str, score: str, method: str, epsilon: float) -> float:
        return average(runs, (who, epsilon, method), score)

    panels = [
        Panel(
            f"{stream.n:,} devices, {who}",
            EPSILONS,
            error,
            y=f"{metric} of {words}",
            log="xy",
            given=(who, f"{what}_{metric.lower()}"),
            marked=True,
        )
        for what, words in queries
        for who, stream in streams.items()
    ]
    claims = partial(_claims, people=list(streams), queries=queries, metric=metric)
    return Study(runs, cells, METHODS, panels, claims, rows=len(queries), look_of=look).reproduced()


def _form(method: str) -> str:
    if method in (OURS, NET):
        return "knows that a device has one destination; pooled reading, best portions for days: not the paper's"
    return "uniform portions, read by digits; any 8 changes of entries"


def _claims(runs: Runs, people: Sequence[str], queries: Sequence[tuple[str, str]], metric: str) -> list[Claim]:
    claims = []
    for what, words in queries:
        score = f"{what}_{metric.lower()}"
        for who in people:
            for method, statement, paper in (
                ("ExSub", "ExSub reduces the error of the best of the others by about 50%", 0.5),
                (OURS, "in our form, by more than that", "above 0.5"),
            ):
                leads = [
                    1 - average(runs, (who, e, method), score) / average(runs, [(who, e, m) for m in OTHERS], score)
                    for e in EPSILONS
                ]
                bounds = {"above": 0.4, "below": 0.7} if method == "ExSub" else {"above": 0.5}
                claims.append(
                    Claim(
                        f"{statement}, {metric} of {words}, {who}",
                        float(np.mean(leads)),
                        paper=paper if method == "ExSub" else None,
                        **bounds,
                        note=f"mean over eps, from {min(leads):.0%} to {max(leads):.0%}",
                    )
                )
    return claims
