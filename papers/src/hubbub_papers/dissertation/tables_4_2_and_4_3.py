"""Tables 4.2 and 4.3: how many of the top 16 PEM finds among strings of 32 bits, by the number of groups."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.protocols.heavy_hitters.prefixes import Integers, PrefixPlan, prefix_lengths
from hubbub.rehearse.top import run_plan
from hubbub_papers.baselines.heavy_hitters.prefixes import search_prefixes
from hubbub_papers.claims import Claim, judged
from hubbub_papers.dissertation.heavy_data import NEEDS, OTHER_DATA, coded
from hubbub_papers.dissertation.heavy_methods import DRAWN
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.top_k_scores import hits

PRINTED_4_2 = {
    ("URL", 1.0): (6.4, 4.7, 4.1, 4.0),
    ("URL", 2.0): (14.3, 12.8, 11.4, 8.5),
    ("Query", 1.0): (4.2, 4.1, 4.0, 3.6),
    ("Query", 2.0): (8.5, 7.8, 6.9, 7.2),
}
"""The averages as printed, for g = 1 to 4; "Query" is AOL."""
PRINTED_4_3 = {
    ("URL", 1.0): (6.4, 6.8, 8.2, 8.4),
    ("URL", 2.0): (14.3, 13.9, 13.4, 13.3),
    ("Query", 1.0): (4.2, 4.6, 5.0, 5.2),
    ("Query", 2.0): (8.5, 8.1, 9.0, 9.4),
}
"""The same where the last group extends the true prefixes."""
K, BITS = 16, 32
_REPORTED_GROUPS = 4
"""The number of groups at which one more run is made of real reports."""
Key = tuple[str, float, int]  # population, epsilon, groups
Runs = RunScores[Key]


@reproduction("dissertation-table-4.2", title="Top 16 found by PEM, m = 32, by g", repeats=10, needs=NEEDS)
def table_4_2(context: Context) -> Reproduced:
    """Averages of runs; beside them one run of real reports."""
    runs = _measured(context, known=False)
    reported = [
        Cell(
            f"{data}, eps = {epsilon:g}",
            f"g = {_REPORTED_GROUPS}, one run of real reports",
            None,
            float(_on_reports(context, data, epsilon)),
            "every report made and every candidate's support counted",
        )
        for data, epsilon in PRINTED_4_2
    ]
    return _cells(context, runs, PRINTED_4_2) + reported + judged(_claims, runs), None


@reproduction(
    "dissertation-table-4.3", title="Top 16 found by PEM's last group from true prefixes", repeats=10, needs=NEEDS
)
def table_4_3(context: Context) -> Reproduced:
    """Averages of runs in which the last group's candidates extend the prefixes of the true top 16."""
    return _cells(context, _measured(context, known=True), PRINTED_4_3), None


def _measured(context: Context, *, known: bool) -> dict[Key, NDArray[np.float64]]:
    def run_once(data: str, run: int) -> dict[Key, int]:
        population = coded(context, data, context.rng.child("tables 4.2 and 4.3", data, run))
        truth, scores = population.ranked(K), {}
        for epsilon, groups in product((1.0, 2.0), range(1, 5)):
            rng = context.rng.child("tables 4.2 and 4.3", data, run, str(epsilon), groups, str(known))
            lengths = prefix_lengths(BITS, K, groups)
            found = search_prefixes(population, lengths, k=K, epsilon=epsilon, rng=rng, known=known)
            scores[data, epsilon, groups] = hits(found.values, truth)
        return scores

    return context.measure(("URL", "Query"), run_once)


def _on_reports(context: Context, data: str, epsilon: float) -> int:
    population = coded(context, data, context.rng.child("tables 4.2 and 4.3", data, 0))
    plan = PrefixPlan(encoding=Integers(BITS), k=K, epsilon=epsilon, groups=_REPORTED_GROUPS)
    rng = context.rng.child("tables 4.2 and 4.3", data, str(epsilon), "reports")
    found = run_plan(plan, population.values[population.people].astype(np.int64), rng)
    return 0 if found.stopped else hits([int(value) for value in found.values], population.ranked(K))


def _cells(context: Context, runs: Runs, printed: Mapping[tuple[str, float], tuple[float, ...]]) -> list[Cell]:
    return [
        Cell(
            f"{data}, eps = {epsilon:g}",
            f"g = {groups}",
            printed[data, epsilon][groups - 1],
            float(hits_of_runs.mean()),
            f"sd {hits_of_runs.std():.2g}; runs averaged: {context.repeats}; {OTHER_DATA[data]}; "
            f"random codes of 32 bits; {DRAWN}",
        )
        for (data, epsilon, groups), hits_of_runs in runs.items()
    ]


def _claims(runs: Runs) -> list[Claim]:
    return [
        Claim(f"{data}, eps = {epsilon:g}: found at g = 4 to g = 1", _ratio(runs, data, epsilon), below=1.0)
        for data, epsilon in PRINTED_4_2
    ]


def _ratio(runs: Runs, data: str, epsilon: float) -> float:
    most = float(runs[data, epsilon, 1].mean())
    return float(runs[data, epsilon, 4].mean()) / most if most else 1.0
