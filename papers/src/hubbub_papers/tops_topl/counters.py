"""Beyond the paper: the square-root factorisation beside H16 with consistency, under two guarantees."""

from __future__ import annotations

import math
from typing import Literal

from hubbub.planning.sums import CounterChoice, choose_counter
from hubbub_papers.claims import Claim
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction

LENGTH = 1 << 20
QUERIES: tuple[Literal["prefixes", "ranges"], ...] = ("prefixes", "ranges")
GUARANTEES = {"pure epsilon = 1": (1.0, None), "zCDP, rho = 0.5": (None, 0.5)}


@reproduction("tops-counters", title="Variance of running sums and ranges: hierarchy and factorisation", repeats=5)
def tops_counters(context: Context) -> Reproduced:
    """Variances in squared thetas, 200 queries, by formula and in noise that is drawn."""
    length = context.size(LENGTH, least=4096)
    plan = [(guarantee, queries) for guarantee in GUARANTEES for queries in QUERIES]
    cells, claims = [], []
    for guarantee, queries in context.track(plan, lambda p: f"{p[0]}, {p[1]}"):
        rng = context.rng.child("counters", guarantee, queries)
        epsilon, rho = GUARANTEES[guarantee]
        choices = choose_counter(length, queries=queries, epsilon=epsilon, rho=rho, rng=rng, runs=context.repeats)
        by_name = {choice.name: choice for choice in choices}
        for name, choice in by_name.items():
            row = f"{guarantee}, {queries}, T = {length:,}: {name}"
            cells.append(Cell(row, "variance on paper", None, choice.on_paper, "exact, in squared thetas"))
            cells.append(Cell(row, "measured", None, choice.measured, f"runs: {context.repeats}"))
        claims += _claims(guarantee, queries, by_name["factorisation"], by_name["hierarchy"])
    return [*cells, *(claim.cell() for claim in claims)], None


def _claims(guarantee: str, queries: str, ours: CounterChoice, tree: CounterChoice) -> list[Claim]:
    """Under zCDP the factorisation is better, under pure epsilon far worse: its columns are long in the L1 norm."""
    above, below = (-math.inf, 1.0) if guarantee.startswith("zCDP") else (1.0, math.inf)
    statement = f"{guarantee}, {queries}: factorisation to hierarchy, variance"
    return [
        Claim(f"{statement} on paper", ours.on_paper / tree.on_paper, above=above, below=below),
        Claim(f"{statement} measured", ours.measured / tree.measured, above=above, below=below),
    ]
