"""Figure 5: the squared errors of one report by the number of buckets, measured and exact."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.data.synthetic import sparse_vectors
from hubbub.mechanisms.ternary.coco import CoCo, coco_buckets
from hubbub.mechanisms.ternary.collision import Collision, collision_buckets
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.random.source import Random
from hubbub_papers.claims import Claim, judged
from hubbub_papers.coco.figure_4 import BUCKETS, EPSILON, D, S
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, finish, legend_below
from hubbub_papers.sparse.errors import Errors, errors
from hubbub_papers.sparse.methods import look

PEOPLE = 10_000
GROUP = 50
ROWS = 20  # the jackknife's runs
ABOUT_20: dict[str, Any] = {"paper": "about 20%", "above": 0.175, "below": 0.225}  # what rounds to 20 in steps of 5
KINDS: dict[str, type[Collision] | type[CoCo]] = {"Collision": Collision, "CoCo": CoCo}
ERRORS = {"Minus Error": "mean_squared", "Plus Error": "frequency_squared", "Item Error": "sign_squared"}
Key = tuple[str, int]  # a method, and how many buckets


@reproduction(
    "coco-figure-5",
    title=f"Squared errors of one report by the number of buckets t, d = {D}, s = {S}, eps = {EPSILON:g}",
    repeats=1,
)
def figure_5(context: Context) -> Reproduced:
    """Minus is the error of means, Plus of frequencies, Item of the frequencies of signs; sums over all positions."""
    settings = [(name, t) for name in KINDS for t in BUCKETS]
    groups = max(3, context.repeats * context.size(PEOPLE) // GROUP)
    runs = {
        key: _measured(_mechanism(*key), groups, context.rng.child("coco figure 5", *key))
        for key in context.track(settings, lambda key: f"{key[0]}, t = {key[1]}")
    }
    figure, panels = canvas(1, 3, width=4.2)
    for panel, (title, field) in zip(panels, ERRORS.items(), strict=True):
        for name in KINDS:
            line = [_exact(_mechanism(name, t), title) for t in BUCKETS]
            panel.plot(BUCKETS, line, color="#555555", linewidth=1, zorder=1)
            points = [runs[name, t][:, Errors._fields.index(field)].mean() for t in BUCKETS]
            panel.plot(BUCKETS, points, **{**look(name), "linestyle": "none"})
        finish(panel, "number of buckets t", "squared error", title)
    panels[0].plot([], [], color="#555555", linewidth=1, label="exact")
    legend_below(figure, panels)
    made = f"{groups * GROUP:,} reports in {groups:,} collections of {GROUP}, times {GROUP} (the paper: 10,000 of one)"
    cells = []
    for name, t in settings:
        for title, field in ERRORS.items():
            exact = _exact(_mechanism(name, t), title)
            measured = float(runs[name, t][:, Errors._fields.index(field)].mean())
            remark = f"exactly {exact:.8g}, by Eqs 8 and 9; {made}"
            cells.append(Cell(f"t = {t}", f"{name} {title}", None, measured, remark))
    return cells + judged(_claims, runs) + [_exact_claim().cell()], figure


@cache
def _mechanism(name: str, t: int) -> TernaryMechanism:
    return KINDS[name](epsilon=EPSILON, dimension=D, sparsity=S, buckets=t)


def _measured(mechanism: TernaryMechanism, groups: int, rng: Random) -> NDArray[np.float64]:
    """The errors of one report, which are n times those of small collections of n; a few rows of means."""
    people = sparse_vectors(groups * GROUP, D, S, rng)
    reports = mechanism.randomize(people, rng)
    rows = []
    for start in range(0, groups * GROUP, GROUP):
        group = slice(start, start + GROUP)
        sketch = mechanism.accumulate(reports[group])
        estimates = mechanism.estimate(sketch).value, mechanism.estimate(sketch, of="frequency").value
        rows.append(errors(*estimates, estimates, people[group]))
    return GROUP * np.array([np.mean(part, axis=0) for part in np.array_split(rows, min(ROWS, groups))])


def _exact(mechanism: TernaryMechanism, title: str) -> float:
    """Lemma 3; for single signs it follows from the lemma, as their estimates are half of the sum and difference."""
    mean, frequency = mechanism.mse(of="mean"), mechanism.mse(of="frequency")
    return {"Minus Error": mean, "Plus Error": frequency, "Item Error": (mean + frequency) / 2}[title]


def _claims(runs: RunScores[Key]) -> list[Claim]:
    claims = []
    for title, field in ERRORS.items():
        for name in KINDS:
            ratios = [
                runs[name, t][:, Errors._fields.index(field)].mean() / _exact(_mechanism(name, t), title)
                for t in BUCKETS
            ]
            furthest = max(abs(quotient - 1) for quotient in ratios)
            note = f"mean over t = {BUCKETS[0]} to {BUCKETS[-1]}; the furthest is off by {furthest:.1%}"
            statement = f"{name}, {title}: measured to exact"
            claims.append(Claim(statement, float(np.mean(ratios)), above=0.97, below=1.03, note=note))
    column = Errors._fields.index("mean_squared")
    best = {name: min(float(runs[name, t][:, column].mean()) for t in BUCKETS) for name in KINDS}
    lower = 1 - best["CoCo"] / best["Collision"]
    note = "both at their best t; the bounds are ours"
    claims.append(Claim("CoCo has lower MSE of the mean, by", lower, **ABOUT_20, note=note))
    return claims


def _exact_claim() -> Claim:
    """The same by the formulas alone."""
    best = {"Collision": collision_buckets(EPSILON, D, S), "CoCo": coco_buckets(EPSILON, D, S)}
    lower = 1 - _mechanism("CoCo", best["CoCo"]).mse() / _mechanism("Collision", best["Collision"]).mse()
    note = f"exact, t = {best['CoCo']} and {best['Collision']}; the bounds are ours"
    return Claim("CoCo has lower MSE of the mean, by", lower, **ABOUT_20, note=note)
