"""The comparison on real key-value data: movie ratings and shopping baskets instead of random vectors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.data.baskets import movies, retail
from hubbub.mechanisms.ternary.vectors import Ternary
from hubbub.simulate.devices import RESAMPLED
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.result import Claim, joined
from hubbub_papers.sparse import METHODS as KNOWN
from hubbub_papers.sparse import PeopleKey, average, look, sweep_people
from hubbub_papers.study import Panel, Study

EPSILONS = (0.5, 1.0, 2.0, 4.0)
METHODS = ("PrivKV", "KVUE", "PCKV-GRR", "PCKV-AGRR", "PCKV-UE", "SUCCINCT", "Collision", "CoCo", "ExSub", "NetSub")
PANELS = {"TVE of means": "mean_tve", "TVE of means, post-processed": "mean_tve_possible"}
ITEMS = 256
Runs = RunScores[PeopleKey]


@dataclass(frozen=True)
class RealPeople:
    """A real population, and how many entries of a vector a mechanism reports on."""

    title: str
    people: Ternary
    sparsity: int

    def note(self) -> str:
        """What differs from the paper, and what is lost because at most s entries are reported."""
        rows, lost, bias = self.people.clipping(self.sparsity)
        n, d = len(self.people), self.people.dimension
        tve = f"a TVE of {np.abs(bias).sum():.3g} that is in these"
        clipped = f"{rows:,} hold more and leave out {lost:.1%} of all entries, {tve}"
        return f"other data: {self.title}, n = {n:,}, d = {d}, s = {self.sparsity}; {clipped}"


@reproduction(
    "wang-2023-vectors-movies", title="Errors of mean ratings of 61 mysteries, s = 16", repeats=5, needs=("movies",)
)
def coco_movies(context: Context) -> Reproduced:
    """A person's vector holds a rating from -1 to 1 for each movie, 0 if it was not rated."""
    people, many = movies(genre="Mystery"), context.size(RESAMPLED)
    resampled = people.resampled(many, context.rng.child("movies"))
    populations = [
        RealPeople("movie ratings as they are", people.ternary(), 16),
        RealPeople(f"movie ratings resampled to {many:,}", resampled.ternary(), 16),
    ]
    return _compare(context, populations)


@reproduction(
    "wang-2023-vectors-retail",
    title="Errors of the shares of 256 items in shopping baskets, s = 8",
    repeats=3,
    needs=("retail",),
)
def coco_retail(context: Context) -> Reproduced:
    """A basket holds +1 for each of its items among the first 256 of the shop's numbers."""
    baskets = retail()
    n = context.size(baskets.n)
    counted = (baskets.items < ITEMS) & (baskets.owners < n)
    items, owners = baskets.items[counted], baskets.owners[counted]
    people = Ternary.columns(items, np.ones(items.size), person=owners, n=n, dimension=ITEMS)
    return _compare(context, [RealPeople("shopping baskets", people, 8)])


def _compare(context: Context, populations: Sequence[RealPeople]) -> Reproduced:
    people = {who.title: (who.people, who.sparsity) for who in populations}
    runs = sweep_people(context, "real key-value data", people, EPSILONS, METHODS)

    def error(title: str, field: str, method: str, epsilon: float) -> float:
        return average(runs, (title, epsilon, method), field)

    panels = [
        Panel(f"{p.title}, n = {len(p.people):,}", EPSILONS, error, y=metric, log="xy", given=(p.title, field))
        for p in populations
        for metric, field in PANELS.items()
    ]
    cells = [
        Cell(
            f"{who.title}, eps = {epsilon:g}: {metric}",
            method,
            None,
            average(runs, (who.title, epsilon, method), field),
            joined(who.note(), f"runs: {context.repeats}", KNOWN[method].note),
        )
        for who in populations
        for metric, field in PANELS.items()
        for epsilon in EPSILONS
        for method in METHODS
    ]
    return Study(
        runs, cells, METHODS, panels, lambda some: _claims(some, list(people)), len(populations), look_of=look
    ).reproduced()


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
                - average(runs, (title, e, ours), "mean_tve")
                / min(average(runs, (title, e, m), "mean_tve") for m in rivals)
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
