"""Figures 9 and 10: the portions of people for the levels: equal, as printed and best, for three kinds of query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from hubbub.protocols.sao2 import Sao2, Tree
from hubbub.protocols.sao2.tree import Queries
from hubbub.simulate.devices import Stream
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction
from hubbub_papers.result import Claim, joined
from hubbub_papers.sao2_exsub.destinations import DAYS, NOT_TRAJECTORY, S, populations
from hubbub_papers.sao2_exsub.online import (
    OURS,
    Runs,
    as_printed,
    average,
    exact_gain,
    expected_tve,
    look,
    sweep,
    toggling,
)
from hubbub_papers.study import Panel, Study

if TYPE_CHECKING:
    pass

__all__ = ["FORMS", "KINDS", "SYNTHETIC", "Calibrated", "calibrated_portions", "figure_9", "figure_10"]


class StreamShape(TypedDict):
    """The length of a stream, the dimension of its vectors, and how many changes a device reports."""

    steps: int
    dimension: int
    changes: int


KINDS: tuple[tuple[Queries, str], ...] = (("mean", "steps"), ("prefix", "sums of 1 to t"), ("range", "all ranges"))
FORMS = ("ExSub-uniform", "ExSub-calibrated", "ExSub, best portions", OURS)
N = 20_000
CAPTION = "n = 20,000, not 100,000: errors are about 2.2 times as large; the caption's m = 20 is s"
SYNTHETIC: StreamShape = {"steps": 128, "dimension": 8, "changes": 20}
_LOOKS = {
    "ExSub-uniform": ("#000000", "d"),
    "ExSub-calibrated": ("#0072b2", "s"),
    "ExSub, best portions": ("#009e73", "^"),
}
_NOTES = {
    "ExSub-calibrated": "W_h of section 7.4 as printed, where it is negative 0",
    "ExSub, best portions": "W_h in proportion to the root of what a level adds to the error, for each kind of query",
    OURS: "best portions for each kind of query, pooled reading: not the paper's",
}


@dataclass(frozen=True, kw_only=True)
class Calibrated(Sao2):
    """SaO2 with the portions that section 7.4 prints."""

    @cached_property
    def portions(self) -> NDArray[np.float64]:
        return calibrated_portions(self.tree)


def calibrated_portions(tree: Tree) -> NDArray[np.float64]:
    """W_h of section 7.4 as printed: in proportion to the error of a level. Best would be its root.

    At the top of a tree of r^h steps W_h is negative, which we replace by 0: then nobody reports on the node that the
    last step needs.
    """
    span = np.array([tree.span(level) for level in range(tree.levels)], dtype=np.float64)
    reach = (tree.fanout - 1) * span
    weights = (tree.steps - tree.fanout * span + (reach + 1) * (2 * reach + 1) / (6 * reach)) * span
    portions = np.maximum(weights, 0.0)
    return np.asarray(portions / portions.sum())


@reproduction(
    "wang-2023-sao2-figure-9",
    title="TVE by the portions of levels: where aircraft went last, 32 days, s = 8",
    repeats=3,
    needs=("flights",),
)
def figure_9(context: Context) -> Reproduced:
    """Where aircraft went last, by epsilon."""
    streams = populations(context)
    labels = {who: f"{NOT_TRAJECTORY}: {stream.n:,} devices, {who}" for who, stream in streams.items()}
    setting: StreamShape = {"dimension": len(streams["as it is"].labels), "steps": DAYS, "changes": S}
    return _compare(context, streams, labels, setting, (0.5, 1.0, 2.0), one=True)


@reproduction(
    "wang-2023-sao2-figure-10", title="TVE by the portions of levels: random vectors, d = 8, T = 128, s = 20", repeats=6
)
def figure_10(context: Context) -> Reproduced:
    """A long stream of random vectors, by epsilon; the caption's m = 20 is s."""
    n = context.size(N)
    people = f"n = {n:,}"
    streams = {people: toggling(n, rng=context.rng.child("turning vectors"), **SYNTHETIC)}
    return _compare(context, streams, {people: CAPTION}, SYNTHETIC, (0.5, 2.0), one=False)


def plan_of(form: str, queries: Queries, epsilon: float, setting: StreamShape, *, one: bool) -> Sao2:
    """The plan of one of `FORMS` for a kind of query; with `one`, it uses that a device has one category at a time."""
    kind = Calibrated if form == "ExSub-calibrated" else Sao2
    plan = as_printed("ExSub", epsilon=epsilon, kind=kind, **setting)
    if form == OURS:
        return replace(plan, queries=queries, choice="optimum", one=one, pooled=True)
    return replace(plan, queries=queries, choice="optimum") if form == "ExSub, best portions" else plan


def _compare(
    context: Context,
    streams: Mapping[str, Stream],
    labels: Mapping[str, str],
    setting: StreamShape,
    epsilons: Sequence[float],
    *,
    one: bool,
) -> Reproduced:
    last = setting["steps"] - 1
    plans = {
        (who, e, _name(form, queries)): plan_of(form, queries, e, setting, one=one)
        for who in streams
        for e in epsilons
        for form in FORMS
        for queries, _ in KINDS
    }
    runs = sweep(context, plans, streams, last=last)
    on_paper = {
        (queries, who, e, form): expected_tve(plans[who, e, _name(form, queries)], queries, streams[who].n, last)
        for queries, _ in KINDS
        for who in streams
        for e in epsilons
        for form in FORMS
    }
    dropped = f"over steps 1 to {last}: as printed nobody tells of the node that step {last + 1} needs"
    cells = [
        Cell(
            f"{words}, {who}, eps = {e:g}: TVE",
            form,
            None,
            average(runs, (who, e, _name(form, queries)), f"{queries}_tve"),
            joined(
                f"theory {on_paper[queries, who, e, form]:.4g}",
                labels[who],
                _NOTES.get(form),
                dropped,
                f"runs: {context.repeats}",
            ),
        )
        for queries, words in KINDS
        for who in streams
        for e in epsilons
        for form in FORMS
    ]
    exact = [
        Claim(
            f"the best portions cut the MSE of {words} by at least 10%, exactly, eps = 1",
            exact_gain(plan_of(FORMS[2], queries, 1.0, setting, one=one), queries),
            above=0.1,
            note="read by digits",
        ).cell()
        for queries, words in KINDS[1:]
    ]

    def error(who: str, queries: Queries, form: str, epsilon: float) -> float:
        return average(runs, (who, epsilon, _name(form, queries)), f"{queries}_tve")

    panels = [
        Panel(who, epsilons, error, y=f"TVE of {words}", log="xy", given=(who, queries), marked=True)
        for who in streams
        for queries, words in KINDS
    ]
    claims = partial(_claims, on_paper=on_paper, people=list(streams), epsilons=epsilons)
    study = Study(runs, cells, FORMS, panels, claims, rows=len(streams), size=(4.0, 3.6), look_of=_look)
    judged_cells, figure = study.reproduced()
    return judged_cells + exact, figure


OnPaper = Mapping[tuple[Queries, str, float, str], float]


def _name(form: str, queries: Queries) -> str:
    """The name of a plan: forms with the best portions have one plan for each kind of query."""
    return form if form in FORMS[:2] else f"{form}, {queries}"


def _look(form: str) -> dict[str, Any]:
    if form == OURS:
        return look(OURS)
    colour, marker = _LOOKS[form]
    return {"color": colour, "marker": marker, "label": form, "markersize": 5, "linewidth": 1.3}


def _claims(runs: Runs, on_paper: OnPaper, people: Sequence[str], epsilons: Sequence[float]) -> list[Claim]:
    def error(queries: Queries, who: str, e: float, form: str) -> float:
        return average(runs, (who, e, _name(form, queries)), f"{queries}_tve")

    claims = []
    for who in people:
        for form in FORMS:
            ratios = [error(q, who, e, form) / on_paper[q, who, e, form] for q, _ in KINDS for e in epsilons]
            note = "over all queries and eps"
            statement = f"{form}, {who}: TVE to the theory, mean"
            claims.append(Claim(statement, float(np.mean(ratios)), above=0.85, below=1.1, note=note))
    who = people[-1]  # on paper, it hardly matters who they are
    for queries, words in KINDS:
        for form in FORMS[1:]:
            gain, measured = (
                1 - float(np.mean([of(queries, who, e, form) / of(queries, who, e, FORMS[0]) for e in epsilons]))
                for of in (lambda *setting: on_paper[setting], error)
            )
            note = f"of the theory, which has no noise, mean over eps; measured {measured:.0%}"
            statement = f"{form}: TVE of {words} less than uniform's by"
            claims.append(Claim(statement, round(gain, 12), **_expected(form, queries), note=note))
    return claims


def _expected(form: str, queries: Queries) -> dict[str, Any]:
    """The text's statement on its own portions: about 20% less for sums, slightly more for steps. None on others."""
    if form != FORMS[1]:
        return {"above": 0.0}
    if queries == "mean":
        return {"paper": "slightly more", "above": -0.1, "below": 0.0}
    return {"paper": "about 20%", "above": 0.175, "below": 0.225}
