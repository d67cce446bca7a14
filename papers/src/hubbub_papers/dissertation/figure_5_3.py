"""Figure 5.3: the frequent items of baskets, by the six protocols from LDPMiner to SVIM."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import pairwise

import numpy as np

from hubbub.protocols.driver import Message, Reply
from hubbub_papers.baselines.ldp_miner import ldp_miner
from hubbub_papers.baselines.mining_ladder import DEPLOYED, LADDER, LDP_MINER, OLH_MINER, SVIM, Rung, Shares, mine_by
from hubbub_papers.claims import Claim, judged, ratio
from hubbub_papers.dissertation.markets import belgian
from hubbub_papers.dissertation.mining import (
    ERROR,
    FIXED_EPSILON,
    FIXED_K,
    HITS,
    NCR,
    KnownSets,
    Method,
    MiningRuns,
    measure,
)
from hubbub_papers.dissertation.mining_figures import cells, draw, mean_score
from hubbub_papers.harness import Context, Reproduced, reproduction

PUBLISHED = "LDPMiner as published"
CLAIMED = (2.0, 4.0)  # the epsilons that claims are about
PRINTED = "around 45 (existing ones: around 12)", "3 orders of magnitudes less"
"""What the text says of POS, against existing protocols: how many items are found, and the error."""


def _by(rung: Rung) -> Method:
    return lambda people, epsilon, k: mine_by(rung, people.domain, epsilon=epsilon, k=k)


def _published(people: KnownSets, epsilon: float, k: int) -> Generator[Message, Reply, Shares]:
    length = int(np.quantile(people.sets.sizes, 0.9, method="inverted_cdf"))
    return ldp_miner(people.domain, epsilon=epsilon, k=k, length=length)


ITEM_METHODS: dict[str, Method] = {rung.name: _by(rung) for rung in LADDER}


@reproduction(
    "dissertation-figure-5.3",
    title="Frequent items of baskets: NCR and squared error, from LDPMiner to SVIM",
    repeats=10,
    needs=("retail",),
)
def figure_5_3(context: Context) -> Reproduced:
    """The baskets as they are and resampled; also LDPMiner as published, half of epsilon a phase, and deployed SVIM."""
    everyone = belgian(context)
    methods = {PUBLISHED: _published, **ITEM_METHODS, DEPLOYED.name: _by(DEPLOYED)}
    runs = measure(context, "figure 5.3", everyone, methods, itemsets=False)
    scores = cells(context, everyone, runs, (HITS, NCR, ERROR))
    return scores + judged(lambda some: _claims(everyone, some), runs), draw(everyone, runs, (NCR, ERROR))


def _claims(everyone: Sequence[KnownSets], runs: MiningRuns) -> list[Claim]:
    claims = []
    for people in everyone:
        for epsilon in CLAIMED:
            where, note = f"{people.name}, k = {FIXED_K}, eps = {epsilon:g}", people.note

            def times(method: str, other: str, column: int, who: str = people.name, at: float = epsilon) -> float:
                return ratio(*(mean_score(runs, who, name, at, FIXED_K, column) for name in (method, other)))

            printed = {LDP_MINER: PRINTED} if epsilon == FIXED_EPSILON else {}  # the text names no epsilon
            for miner, words in ((LDP_MINER, "LDPMiner"), (OLH_MINER, "LDPMiner by OLH")):
                found, error = times(SVIM.name, miner.name, HITS), times(miner.name, SVIM.name, ERROR)
                many, less = printed.get(miner, (None, None))
                claims += [
                    Claim(f"{where}: found, SVIM to {words}", found, many, above=2, note=note),
                    Claim(f"{where}: Var, {words} to SVIM", error, less, above=5, note=note),
                ]
            adap = times("(OLH, 1), (OLH, 2k)", "(OLH, 1), (Adap, 2k)", ERROR)
            claims.append(Claim(f"{where}: Var, OLH to Adap at 2k", adap, "two magnitudes", above=10, note=note))
            for before, after in pairwise(LADDER[:-1]):  # the update changes no order
                gain = times(after.name, before.name, NCR)
                claims.append(Claim(f"{where}: NCR, {after.name} to {before.name}", gain, above=1, note=note))
    return claims
