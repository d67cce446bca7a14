"""Chapter 5: the figures in small, and the numbers of the text."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hubbub.core.domain.sets import ItemSets
from hubbub.data.baskets import retail
from hubbub.random.source import Random
from hubbub_papers.baselines.mining_ladder import LDP_MINER, SVIM, Rung, mine_by
from hubbub_papers.dissertation.chapter_5_mining import (
    ERROR,
    FIXED_K,
    HITS,
    KS,
    NCR,
    SWEEP,
    KnownSets,
    MiningSetting,
    cells,
    draw,
    found_by,
    mean_score,
    measure,
)
from hubbub_papers.harness import Context
from hubbub_papers.top_scores import hits, ncr, squared_error


@pytest.fixture
def context() -> Context:
    return Context(repeats=2, rng=Random(seed=1))


@pytest.fixture
def people() -> KnownSets:
    rows = [[0, 1]] * 900 + [[1, 7]] * 600 + [[]] * 500
    items = np.array([item for row in rows for item in row])
    return KnownSets("2,000 people", ItemSets(np.cumsum([0, *map(len, rows)]), items, domain=200), "made up")


def test_the_sweep_has_every_epsilon_at_one_k_and_every_k_at_one_epsilon():
    assert len(set(SWEEP)) == len(SWEEP) == 8
    assert {k for _, k in SWEEP} == set(KS)
    assert (2.0, FIXED_K) in SWEEP


def test_the_truth_is_of_items_or_of_itemsets(people: KnownSets):
    assert people.top(9, itemsets=False) == {(1,): 1500, (0,): 900, (7,): 600}
    assert people.top(4, itemsets=True) == {(1,): 1500, (0,): 900, (0, 1): 900, (7,): 600}


def test_every_setting_is_measured_and_scored(context: Context, people: KnownSets):
    methods = {"SVIM": lambda people, epsilon, k: mine_by(SVIM, people.domain, epsilon=epsilon, k=k)}
    runs = measure(context, "test", [people], methods, itemsets=False)
    assert set(runs) == {MiningSetting(people.name, "SVIM", *pair) for pair in SWEEP}
    # At epsilon 4 each of the three items is named ten standard errors above noise: nothing can be missed.
    scores = runs[MiningSetting(people.name, "SVIM", 4.0, FIXED_K)]
    assert scores[:, HITS].tolist() == [3.0, 3.0]
    assert scores[:, NCR].tolist() == [1.0, 1.0]
    # The error is of counts among 2,000: a tenth of them at most.
    assert (scores[:, ERROR] < 200.0**2).all()


def test_runs_that_found_nothing_have_no_error_and_spoil_none(context: Context, people: KnownSets):
    runs = {
        MiningSetting(people.name, method, epsilon, k): np.array([[8.0, 0.2, 100.0], [0.0, 0.0, error]])
        for method, error in (("SVSM", 300.0), ("SVSM with LDPMiner", math.nan))
        for epsilon, k in SWEEP
    }
    assert mean_score(runs, people.name, "SVSM", 2.0, 64, ERROR) == 200.0
    assert mean_score(runs, people.name, "SVSM with LDPMiner", 2.0, 64, ERROR) == 100.0
    table = {(cell.row, cell.column): cell for cell in cells(context, [people], runs, (HITS, ERROR))}
    lost = table["2,000 people, k = 64, eps = 2", "SVSM with LDPMiner: Var"]
    assert (lost.ours, lost.paper) == (100.0, None)
    assert "1 of them found none" in lost.note
    assert "made up" in lost.note
    assert "median 200" in table["2,000 people, k = 64, eps = 2", "SVSM: Var"].note
    assert table["2,000 people, k = 64, eps = 2", "SVSM with LDPMiner: found"].ours == 4.0
    assert len(draw([people], runs, (NCR, ERROR)).axes) == 4


def test_a_method_that_never_found_anything_has_no_cell_and_no_point(context: Context, people: KnownSets):
    runs = {
        MiningSetting(people.name, "SVSM", epsilon, k): np.array([[0.0, 0.0, math.nan]] * 2) for epsilon, k in SWEEP
    }
    assert cells(context, [people], runs, (ERROR,)) == []
    assert math.isnan(mean_score(runs, people.name, "SVSM", 2.0, 64, ERROR))
    assert len(draw([people], runs, (ERROR,)).axes) == 2


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
