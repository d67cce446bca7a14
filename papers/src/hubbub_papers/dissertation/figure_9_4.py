"""Figure 9.4: the 32 most common strings of 48 bits by TreeHist, with shuffled reports and without a shuffle."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation
from hubbub_papers.baselines.heavy_hitters.shuffled_tree import drawn_shares, reported_shares, shuffled_tree_hist
from hubbub_papers.baselines.shuffled.comparators import COMPARATORS, HistogramMethod, HistogramSetting
from hubbub_papers.baselines.shuffled.numerical import NUMERICAL
from hubbub_papers.claims import Claim, judged, means
from hubbub_papers.dissertation.heavy_data import DATA, OTHER_DATA
from hubbub_papers.harness import Cell, Context, Reproduced, RunScores, reproduction
from hubbub_papers.plots import canvas, draw_methods, finish, legend_below
from hubbub_papers.top_k_scores import hits

DELTA, K = 1e-9, 32
CENTRAL = (0.2, 0.4, 0.6, 0.8, 1.0)
SHUFFLED = ("SH", "AUE", "RAP", "SOLH")
LOCAL = ("OLH", "Had")
POPULATIONS = ("Query", "Short names")
BOUNDS = ("formulas of the chapter", "numerical bounds")
Make = Callable[[HistogramSetting], HistogramMethod | None]
_METHODS: list[tuple[str, str, Make]] = [
    *((BOUNDS[0], name, COMPARATORS[name]) for name in (*SHUFFLED, *LOCAL)),
    *((BOUNDS[1], name, make) for name, make in NUMERICAL.items()),
]
Key = tuple[str, str, str, float]  # data, bounds, method, central epsilon


class WithoutNoise:
    """A histogram method that returns the true shares.

    With it TreeHist loses strings only because it keeps no more than 32 prefixes a round.

    Example:
        >>> WithoutNoise().shares(np.array([3, 1]), Random(seed=1)).tolist()
        [0.75, 0.25]
    """

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """The true shares."""
        return np.asarray(counts / counts.sum())

    def error(self, counts: NDArray[np.int64]) -> float:
        """The expected error, which is 0."""
        return 0.0


@reproduction(
    "dissertation-figure-9.4",
    title="Top 32 strings by TreeHist in 6 rounds of 8 bits: the share that is found, by the central epsilon",
    repeats=5,
    needs=("words", "names"),
)
def figure_9_4(context: Context) -> Reproduced:
    """Shuffled methods divide epsilon and delta by the rounds, local ones divide the people."""

    def run_once(data: str, run: int) -> dict[Key, float]:
        population = DATA[data](context, context.rng.child("9.4", data, run))
        shares = {}
        for central, (bounds, name, make) in product(CENTRAL, _METHODS):
            key = (data, bounds, name, central)
            share = found_share(population, central, make, context.rng.child("9.4", *map(str, key), run), name)
            if share is not None:
                shares[key] = share
        return shares

    runs = context.measure(POPULATIONS, run_once)
    figure, panels = canvas(len(POPULATIONS), 2, width=5.0)
    for panel, (data, bounds) in zip(panels, product(POPULATIONS, BOUNDS), strict=True):
        sources = {name: BOUNDS[0] if name in LOCAL else bounds for name in (*SHUFFLED, *LOCAL)}
        lines = {name: [runs.get((data, source, name, e)) for e in CENTRAL] for name, source in sources.items()}
        draw_methods(panel, CENTRAL, lines)
        finish(panel, "central $\\epsilon$", "share of the top 32 found", f"{data}, {bounds}", log="")
    legend_below(figure, panels[:2], columns=6)
    cells = [
        Cell(f"{data}, eps_c = {central:g}", name, None, mean, f"{bounds}; {OTHER_DATA[data]}")
        for (data, bounds, name, central), mean in means(runs).items()
    ]
    cells += [_without_noise(context, data) for data in POPULATIONS]
    return cells + judged(_claims, runs) + [_real(context)], figure


def found_share(
    population: BitPopulation,
    central: float,
    make: Make,
    rng: Random,
    name: str,
    *,
    real: bool = False,
) -> float | None:
    """The share of the true top 32 that is found; None if the method does not apply."""
    found = shuffled_tree_hist(
        population,
        k=K,
        epsilon=central,
        delta=DELTA,
        make=make,
        rng=rng,
        divided=name in LOCAL,
        shares=reported_shares if real else drawn_shares,
    )
    return None if found is None else hits(found, population.ranked(K)) / K


def _without_noise(context: Context, data: str) -> Cell:
    population = DATA[data](context, context.rng.child("9.4", data, 0))
    share = found_share(population, 1.0, lambda _: WithoutNoise(), context.rng, "exact")
    assert share is not None
    return Cell(data, "without noise", None, share, "what keeping 32 prefixes a round leaves of the top 32")


def _real(context: Context) -> Cell:
    population = DATA["Query"](context, context.rng.child("9.4", "Query", 0))
    rng = context.rng.child("9.4", "real")
    share = found_share(population, 1.0, NUMERICAL["SOLH"], rng, "SOLH", real=True)
    assert share is not None
    return Cell("Query, eps_c = 1", "SOLH, real reports", None, share, "numerical bounds; every report made, one run")


def _claims(runs: RunScores[Key]) -> list[Claim]:
    claims = []
    for data in POPULATIONS:
        found = {key[1:]: mean for key, mean in means(runs).items() if key[0] == data}
        local = max(found[BOUNDS[0], name, 1.0] for name in LOCAL)
        for bounds in BOUNDS:
            better = found[bounds, "SOLH", 1.0] - local
            claims.append(Claim(f"{data}, eps_c = 1: SOLH finds more than OLH and Had, {bounds}", better, above=0))
        worse = local - found[BOUNDS[0], "SH", 1.0]
        claims.append(Claim(f"{data}, eps_c = 1: SH finds less than the local ones", worse, above=0))
        ours = found[BOUNDS[1], "SOLH", 0.4] - found[BOUNDS[0], "SOLH", 0.4]
        claims.append(Claim(f"{data}, eps_c = 0.4: SOLH finds more by numerical bounds", ours, above=0, note="ours"))
    return claims
