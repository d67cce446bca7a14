"""Figures 5.4 and 5.8: frequent itemsets, by SVSM and by SVSM with LDPMiner in the place of SVIM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hubbub_papers.baselines.mining_ladder import DEPLOYED, LDP_MINER, OLH_MINER, SVIM, Rung, mine_by
from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.markets import belgian, british
from hubbub_papers.dissertation.mining import ERROR, FIXED_K, HITS, NCR, KnownSets, Method, MiningRuns, measure
from hubbub_papers.dissertation.mining_figures import cells, draw, mean_score
from hubbub_papers.harness import Cell, Context, Reproduced, reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS, THEIRS, BY_OLH = "SVSM", "SVSM with LDPMiner", "SVSM with LDPMiner by OLH"
DEPLOYED_SETS = "SVSM as deployed"


def _by(rung: Rung) -> Method:
    return lambda people, epsilon, k: mine_by(rung, people.domain, epsilon=epsilon, k=k, itemsets=True)


METHODS: dict[str, Method] = {
    OURS: _by(SVIM),
    THEIRS: _by(LDP_MINER),
    BY_OLH: _by(OLH_MINER),
    DEPLOYED_SETS: _by(DEPLOYED),
}
PRINTED = {1.0: 0.7, 2.0: 0.9}
"""NCR of SVSM on POS at k = 64, in the text."""


@reproduction(
    "dissertation-figure-5.4",
    title="Frequent itemsets of baskets: NCR and squared error, SVSM by SVIM and by LDPMiner",
    repeats=10,
    needs=("retail",),
)
def figure_5_4(context: Context) -> Reproduced:
    """The baskets as they are and resampled."""
    everyone = belgian(context)
    scores, runs, figure = _measured(context, everyone, "figure 5.4")
    return scores + judged(lambda some: _claims(everyone, some) + _printed(everyone, some), runs), figure


@reproduction(
    "dissertation-figure-5.8",
    title="Frequent itemsets of other data: NCR and squared error, SVSM by SVIM and by LDPMiner",
    repeats=10,
    needs=("online_retail",),
)
def figure_5_8(context: Context) -> Reproduced:
    """Customers of a British shop; Kosarak is in no package."""
    everyone = [british(context)]
    scores, runs, figure = _measured(context, everyone, "figure 5.8")
    return scores + judged(lambda some: _claims(everyone, some), runs), figure


def _measured(context: Context, everyone: Sequence[KnownSets], name: str) -> tuple[list[Cell], MiningRuns, Figure]:
    runs = measure(context, name, everyone, METHODS, itemsets=True)
    return cells(context, everyone, runs, (HITS, NCR, ERROR)), runs, draw(everyone, runs, (NCR, ERROR))


def _claims(everyone: Sequence[KnownSets], runs: MiningRuns) -> list[Claim]:
    claims = []
    for people in everyone:
        for epsilon in (2.0, 4.0):
            where, note = f"{people.name}, k = {FIXED_K}, eps = {epsilon:g}", people.note

            for rival in (THEIRS, BY_OLH):
                (ahead, behind), (ours, theirs) = (
                    [mean_score(runs, people.name, method, epsilon, FIXED_K, column) for method in (OURS, rival)]
                    for column in (NCR, ERROR)
                )
                # A difference: a rival that finds none of the top has an NCR of 0, and no error.
                lead = Claim(f"{where}: NCR, SVSM less 1.5 times {rival}", ahead - 1.5 * behind, above=0, note=note)
                none = f"; {rival} found none" if math.isnan(theirs) else ""
                error = Claim(f"{where}: Var, {rival} to SVSM", ratio(theirs, ours), above=1, note=note + none)
                claims += [lead, error]
    return claims


def _printed(everyone: Sequence[KnownSets], runs: MiningRuns) -> list[Claim]:
    """The numbers that the text states for POS; with ten times as many items, our baskets need not reach them."""
    claims = []
    for people in everyone:
        for epsilon, printed in PRINTED.items():
            reached = mean_score(runs, people.name, OURS, epsilon, FIXED_K, NCR)
            where = f"{people.name}, k = {FIXED_K}, eps = {epsilon:g}"
            claims.append(Claim(f"{where}: NCR of SVSM", reached, printed, above=printed - 0.1, note=people.note))
        errors = [mean_score(runs, people.name, method, 2.0, FIXED_K, ERROR) for method in (THEIRS, OURS)]
        statement = f"{people.name}, k = {FIXED_K}, eps = 2: Var, SVSM with LDPMiner to SVSM, as printed"
        claims.append(Claim(statement, ratio(*errors), "two magnitudes", above=50, below=500, note=people.note))
    return claims
