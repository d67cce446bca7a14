"""Key-value data that is real: movie ratings, and shopping baskets, where the paper has random vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.ternary import Ternary
from hubbub.data.baskets import retail
from hubbub.data.key_values import movies
from hubbub.reproduce.claims import Claim, judged
from hubbub.reproduce.harness import Cell, Context, Reproduced, reproduction
from hubbub.reproduce.plots import canvas, finish, legend_below
from hubbub.reproduce.sparse.errors import Errors, measure
from hubbub.reproduce.sparse.methods import METHODS as KNOWN
from hubbub.reproduce.sparse.methods import look, mechanism
from hubbub.simulate.event_stream import RESAMPLED

EPSILONS = (0.5, 1.0, 2.0, 4.0)
METHODS = ("PrivKV", "KVUE", "PCKV-GRR", "PCKV-AGRR", "PCKV-UE", "SUCCINCT", "Collision", "CoCo", "ExSub", "NetSub")
PANELS = {"TVE of means": "mean_tve", "TVE of means, post-processed": "mean_tve_possible"}
ITEMS = 256
Key = tuple[str, float, str]  # who, epsilon, method
Runs = Mapping[Key, NDArray[np.float64]]


@dataclass(frozen=True)
class RealPeople:
    """People, who they are, and how many entries each may report.

    Parameters
    ----------
    title
        Who they are.
    people, sparsity
        What they hold, and of how much a report tells.
    """

    title: str
    people: Ternary
    sparsity: int

    def note(self) -> str:
        """What is other than in the paper, and what reporting no more than s entries loses."""
        rows, lost, bias = self.people.clipping(self.sparsity)
        n, d = len(self.people), self.people.dimension
        alone = f"a TVE of {np.abs(bias).sum():.3g} that is in these"
        cut = f"{rows:,} hold more and leave out {lost:.1%} of all entries, {alone}"
        return f"other data: {self.title}, n = {n:,}, d = {d}, s = {self.sparsity}; {cut}"


@reproduction("coco-movies", title="Errors of mean ratings of 61 mysteries, s = 16", repeats=5, needs=("movies",))
def coco_movies(context: Context) -> Reproduced:
    """Who rated which movie how, from -1 to 1 and 0 where nobody did."""
    people, many = movies(genre="Mystery"), context.size(RESAMPLED)
    resampled = people.resampled(many, context.rng.child("movies"))
    populations = [
        RealPeople("movie ratings as they are", people.ternary(), 16),
        RealPeople(f"movie ratings resampled to {many:,}", resampled.ternary(), 16),
    ]
    return _compare(context, populations)


@reproduction(
    "coco-retail", title="Errors of the shares of 256 items in shopping baskets, s = 8", repeats=3, needs=("retail",)
)
def coco_retail(context: Context) -> Reproduced:
    """A basket holds +1 for each of its items among the first 256 of the shop's numbers."""
    baskets = retail()
    n = context.size(baskets.n)
    ours = (baskets.items < ITEMS) & (baskets.owners < n)
    items, owners = baskets.items[ours], baskets.owners[ours]
    people = Ternary.columns(items, np.ones(items.size), person=owners, n=n, dimension=ITEMS)
    return _compare(context, [RealPeople("shopping baskets", people, 8)])


def _compare(context: Context, populations: Sequence[RealPeople]) -> Reproduced:
    runs = _sweep(context, populations)
    figure, panels = canvas(len(populations), len(PANELS))
    for row, who in enumerate(populations):
        for column, (metric, what) in enumerate(PANELS.items()):
            panel = panels[row * len(PANELS) + column]
            for method in METHODS:
                panel.plot(EPSILONS, [_mean(runs, (who.title, e, method), what) for e in EPSILONS], **look(method))
            finish(panel, "$\\epsilon$", metric, f"{who.title}, n = {len(who.people):,}", log="xy")
    legend_below(figure, panels)
    cells = [
        Cell(
            f"{who.title}, eps = {epsilon:g}: {metric}",
            method,
            None,
            _mean(runs, (who.title, epsilon, method), what),
            "; ".join(filter(None, [who.note(), f"runs: {context.repeats}", KNOWN[method].note])),
        )
        for who in populations
        for metric, what in PANELS.items()
        for epsilon in EPSILONS
        for method in METHODS
    ]
    return cells + judged(lambda some: _claims(some, [who.title for who in populations]), runs), figure


def _sweep(context: Context, populations: Sequence[RealPeople]) -> dict[Key, NDArray[np.float64]]:
    plan = [
        (who, e, m, run) for who in populations for e in EPSILONS for m in METHODS for run in range(context.repeats)
    ]
    rows_of: dict[Key, list[Errors]] = {}
    for who, epsilon, method, run in context.track(
        plan, lambda p: f"{p[0].title}, eps = {p[1]:g}, {p[2]}, run {p[3] + 1}"
    ):
        built = mechanism(method, epsilon, who.people.dimension, who.sparsity, len(who.people))
        rng = context.rng.child("real key-value data", who.title, str(epsilon), method, run)
        rows_of.setdefault((who.title, epsilon, method), []).append(measure(built, who.people, rng, exactly=False))
    return {key: np.array(errors) for key, errors in rows_of.items()}


def _mean(runs: Runs, key: Key, what: str) -> float:
    return float(runs[key][:, Errors._fields.index(what)].mean())


def _claims(runs: Runs, titles: Sequence[str]) -> list[Claim]:
    others = METHODS[:-4]
    claims = []
    for title in titles:
        for ours, rivals in (
            ("Collision", others),
            ("CoCo", ("Collision",)),
            ("ExSub", ("Collision", "SUCCINCT")),
            ("NetSub", ("ExSub",)),
        ):
            leads = [
                1
                - _mean(runs, (title, e, ours), "mean_tve")
                / min(_mean(runs, (title, e, m), "mean_tve") for m in rivals)
                for e in EPSILONS
            ]
            rival = (
                rivals[0]
                if len(rivals) == 1
                else "the best of the others"
                if rivals == others
                else " and ".join(rivals)
            )
            note = f"mean over eps, from {min(leads):.0%} to {max(leads):.0%}"
            claims.append(Claim(f"{title}: {ours} beats {rival}, TVE, by", float(np.mean(leads)), above=0, note=note))
    return claims
