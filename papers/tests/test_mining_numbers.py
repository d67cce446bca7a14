"""On the 88,162 baskets: SVIM against LDPMiner, SVSM against SVSM with LDPMiner."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.data.baskets import retail
from hubbub.random.source import Random
from hubbub_papers.baselines.mining_ladder import LDP_MINER, SVIM, Rung, mine_by
from hubbub_papers.dissertation.chapter_5_mining import KnownSets, found_by
from hubbub_papers.top_scores import hits, ncr, squared_error

pytestmark = pytest.mark.slow
K = 64


@pytest.fixture(scope="module")
def baskets() -> KnownSets:
    return KnownSets("baskets", retail(), "as they are")


def scores(people: KnownSets, rung: Rung, epsilon: float, runs: int, *, itemsets: bool) -> np.ndarray:
    """How many of the true top 64 were found and their NCR, on average; and the median of the runs' squared errors."""
    truth = people.top(K, itemsets=itemsets)
    rows = []
    for run in range(runs):
        protocol = mine_by(rung, people.domain, epsilon=epsilon, k=K, itemsets=itemsets)
        found = found_by(protocol, people.sets, Random(seed=run))
        counts = {items: share * len(people.sets) for items, share in found.items()}
        rows.append((hits(found, list(truth)), ncr(found, list(truth)), squared_error(counts, truth, list(truth))))
    array = np.array(rows)
    return np.array([array[:, 0].mean(), array[:, 1].mean(), np.nanmedian(array[:, 2])])


def test_svim_finds_twice_as_many_items_as_ldp_miner_with_a_fifth_of_the_error(baskets: KnownSets):
    svim, miner = (scores(baskets, rung, 2.0, 20, itemsets=False) for rung in (SVIM, LDP_MINER))
    # Measured 6.35 and 2.55, with deviations of 1.01 and 0.74: of twenty runs, the mean of the one less twice that of
    # the other is 1.25 with a deviation of 0.4, and below 0 once in 1,000 times. Errors differ by a factor of 700.
    assert svim[0] > 2 * miner[0]
    assert miner[2] > 5 * svim[2]


def test_svsm_is_ahead_of_svsm_with_ldp_miner(baskets: KnownSets):
    svsm, miner = (scores(baskets, rung, 4.0, 4, itemsets=True) for rung in (SVIM, LDP_MINER))
    # Measured 0.71 and 0.05 in ten runs, with deviations of 0.09 and 0.03: fourteen deviations of the mean of four.
    assert svsm[1] > 1.5 * miner[1]
    assert svsm[1] > 0.5


def test_a_second_phase_that_pads_as_ldp_miner_does_would_be_seen(baskets: KnownSets):
    wrong = Rung("(OLH, 1), (OLH, 2k)", "OLH", "1", "OLH", "2k")
    padded, miner = (scores(baskets, rung, 2.0, 8, itemsets=False) for rung in (wrong, LDP_MINER))
    # In twenty runs the median errors were 1.4e9 and 1.2e9: there is no factor of 5 between them.
    assert not miner[2] > 5 * padded[2]
