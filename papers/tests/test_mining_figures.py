"""The sweeps of chapter 5: what is made of runs that found something, and of those that found nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hubbub.core.domain.sets import ItemSets
from hubbub.random.source import Random
from hubbub_papers.baselines.mining_ladder import SVIM, mine_by
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
    mean_score,
    measure,
)
from hubbub_papers.harness import Context


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
