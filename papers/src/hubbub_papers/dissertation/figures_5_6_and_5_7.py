"""Figures 5.6 and 5.7: the frequent items of other data, by the six protocols from LDPMiner to SVIM."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hubbub_papers.baselines.mining_ladder import LDP_MINER, SVIM
from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.figure_5_3 import ITEM_METHODS
from hubbub_papers.dissertation.markets import british, synthesized
from hubbub_papers.dissertation.mining import ERROR, NCR, KnownSets, MiningRuns, measure
from hubbub_papers.dissertation.mining_figures import cells, draw, mean_score
from hubbub_papers.harness import Context, Reproduced, reproduction

NO_KOSARAK = "Kosarak is in no package"


@reproduction(
    "dissertation-figure-5.6",
    title="Frequent items of other data: NCR, from LDPMiner to SVIM",
    repeats=10,
    needs=("online_retail",),
)
def figure_5_6(context: Context) -> Reproduced:
    """Customers of a British shop, and synthesized baskets."""
    return _measured(context, NCR)


@reproduction(
    "dissertation-figure-5.7",
    title="Frequent items of other data: squared error, from LDPMiner to SVIM",
    repeats=10,
    needs=("online_retail",),
)
def figure_5_7(context: Context) -> Reproduced:
    """The same runs as those of Figure 5.6."""
    return _measured(context, ERROR)


def _measured(context: Context, column: int) -> Reproduced:
    everyone = [british(context), synthesized(context)]
    runs = measure(context, "figures 5.6 and 5.7", everyone, ITEM_METHODS, itemsets=False)
    scores = cells(context, everyone, runs, (column,))
    return scores + judged(lambda some: _claims(everyone, some, column), runs), draw(everyone, runs, (column,))


def _claims(everyone: Sequence[KnownSets], runs: MiningRuns, column: int) -> list[Claim]:
    """SVIM works persistently better than its competitors: it beats LDPMiner even where its lead is least."""
    claims = []
    order = (LDP_MINER.name, SVIM.name) if column == ERROR else (SVIM.name, LDP_MINER.name)
    what = "Var, LDPMiner to SVIM" if column == ERROR else "NCR, SVIM to LDPMiner"
    for people in everyone:
        pairs = dict.fromkeys((at.epsilon, at.k) for at in runs)
        leads = [ratio(*(mean_score(runs, people.name, name, *pair, column) for name in order)) for pair in pairs]
        least = min((lead for lead in leads if not math.isnan(lead)), default=math.nan)
        note = f"{people.note}; {NO_KOSARAK}"
        claims.append(Claim(f"{people.name}: {what}, least over eps and k", least, above=1, note=note))
    return claims
