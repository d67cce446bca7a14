"""Chapter 5: LDPMiner, the steps from it to SVIM, the figures in small, and the scores of what was found."""

import math
from collections.abc import Generator
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from hubbub.core.domain import Ordinal, Sets
from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import InvalidValue
from hubbub.data.baskets import Baskets, retail
from hubbub.protocols.ask import CIRCLE, Ask
from hubbub.protocols.driver import Message, Reply
from hubbub.protocols.itemsets.study import mine
from hubbub.random.source import Random
from hubbub.simulate.devices import SetStream
from hubbub.simulate.fleet import Fleet
from hubbub_papers.baselines.mining_ladder import DEPLOYED, LADDER, LDP_MINER, SVIM, Rung, Shares, ldp_miner, mine_by
from hubbub_papers.dissertation import chapter_5_mining as mining
from hubbub_papers.dissertation.chapter_5_mining import MiningSetting, cells, draw, found_by, mean_score, measure
from hubbub_papers.harness import Context
from hubbub_papers.top_scores import hits, ncr, squared_error, top_items, top_itemsets


@pytest.fixture
def context() -> Context:
    return Context(repeats=2, rng=Random(seed=1))


@pytest.fixture
def people() -> mining.KnownSets:
    rows = [[0, 1]] * 900 + [[1, 7]] * 600 + [[]] * 500
    items = np.array([item for row in rows for item in row])
    return mining.KnownSets("2,000 people", ItemSets(np.cumsum([0, *map(len, rows)]), items, domain=200), "made up")


def test_the_sweep_has_every_epsilon_at_one_k_and_every_k_at_one_epsilon():
    assert len(set(mining.SWEEP)) == len(mining.SWEEP) == 8
    assert {k for _, k in mining.SWEEP} == set(mining.KS)
    assert (2.0, mining.FIXED_K) in mining.SWEEP


def test_the_truth_is_of_items_or_of_itemsets(people: mining.KnownSets):
    assert people.top(9, itemsets=False) == {(1,): 1500, (0,): 900, (7,): 600}
    assert people.top(4, itemsets=True) == {(1,): 1500, (0,): 900, (0, 1): 900, (7,): 600}


def test_every_setting_is_measured_and_scored(context: Context, people: mining.KnownSets):
    methods = {"SVIM": lambda people, epsilon, k: mine_by(SVIM, people.domain, epsilon=epsilon, k=k)}
    runs = measure(context, "test", [people], methods, itemsets=False)
    assert set(runs) == {MiningSetting(people.name, "SVIM", *pair) for pair in mining.SWEEP}
    # At epsilon 4 each of the three items is named ten standard errors above noise: nothing can be missed.
    scores = runs[MiningSetting(people.name, "SVIM", 4.0, mining.FIXED_K)]
    assert scores[:, mining.HITS].tolist() == [3.0, 3.0]
    assert scores[:, mining.NCR].tolist() == [1.0, 1.0]
    # The error is of counts among 2,000: a tenth of them at most.
    assert (scores[:, mining.ERROR] < 200.0**2).all()


def test_runs_that_found_nothing_have_no_error_and_spoil_none(context: Context, people: mining.KnownSets):
    runs = {
        MiningSetting(people.name, method, epsilon, k): np.array([[8.0, 0.2, 100.0], [0.0, 0.0, error]])
        for method, error in (("SVSM", 300.0), ("SVSM with LDPMiner", math.nan))
        for epsilon, k in mining.SWEEP
    }
    assert mean_score(runs, people.name, "SVSM", 2.0, 64, mining.ERROR) == 200.0
    assert mean_score(runs, people.name, "SVSM with LDPMiner", 2.0, 64, mining.ERROR) == 100.0
    table = {(cell.row, cell.column): cell for cell in cells(context, [people], runs, (mining.HITS, mining.ERROR))}
    lost = table["2,000 people, k = 64, eps = 2", "SVSM with LDPMiner: Var"]
    assert (lost.ours, lost.paper) == (100.0, None)
    assert "1 of them found none" in lost.note
    assert "made up" in lost.note
    assert "median 200" in table["2,000 people, k = 64, eps = 2", "SVSM: Var"].note
    assert table["2,000 people, k = 64, eps = 2", "SVSM with LDPMiner: found"].ours == 4.0
    assert len(draw([people], runs, (mining.NCR, mining.ERROR)).axes) == 4


def test_a_method_that_never_found_anything_has_no_cell_and_no_point(context: Context, people: mining.KnownSets):
    runs = {
        MiningSetting(people.name, "SVSM", epsilon, k): np.array([[0.0, 0.0, math.nan]] * 2)
        for epsilon, k in mining.SWEEP
    }
    assert cells(context, [people], runs, (mining.ERROR,)) == []
    assert math.isnan(mean_score(runs, people.name, "SVSM", 2.0, 64, mining.ERROR))
    assert len(draw([people], runs, (mining.ERROR,)).axes) == 2


K = 64


@pytest.fixture(scope="module")
def baskets() -> mining.KnownSets:
    return mining.KnownSets("baskets", retail(), "as they are")


def scores(people: mining.KnownSets, rung: Rung, epsilon: float, runs: int, *, itemsets: bool) -> np.ndarray:
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


@pytest.mark.slow
def test_svim_finds_twice_as_many_items_as_ldp_miner_with_a_fifth_of_the_error(baskets: mining.KnownSets):
    svim, miner = (scores(baskets, rung, 2.0, 20, itemsets=False) for rung in (SVIM, LDP_MINER))
    # Measured 6.35 and 2.55, with deviations of 1.01 and 0.74: of twenty runs, the mean of the one less twice that of
    # the other is 1.25 with a deviation of 0.4, and below 0 once in 1,000 times. Errors differ by a factor of 700.
    assert svim[0] > 2 * miner[0]
    assert miner[2] > 5 * svim[2]


@pytest.mark.slow
def test_svsm_is_ahead_of_svsm_with_ldp_miner(baskets: mining.KnownSets):
    svsm, miner = (scores(baskets, rung, 4.0, 4, itemsets=True) for rung in (SVIM, LDP_MINER))
    # Measured 0.71 and 0.05 in ten runs, with deviations of 0.09 and 0.03: fourteen deviations of the mean of four.
    assert svsm[1] > 1.5 * miner[1]
    assert svsm[1] > 0.5


@pytest.mark.slow
def test_a_second_phase_that_pads_as_ldp_miner_does_would_be_seen(baskets: mining.KnownSets):
    wrong = Rung("(OLH, 1), (OLH, 2k)", "OLH", "1", "OLH", "2k")
    padded, miner = (scores(baskets, rung, 2.0, 8, itemsets=False) for rung in (wrong, LDP_MINER))
    # In twenty runs the median errors were 1.4e9 and 1.2e9: there is no factor of 5 between them.
    assert not miner[2] > 5 * padded[2]


RANKED = ["a", "b", "c", "d"]


def test_ncr_counts_ranks_and_not_places_in_the_list():
    assert ncr(RANKED, RANKED) == ncr(RANKED[::-1], RANKED) == 1.0
    assert ncr(["d", "x"], RANKED) == pytest.approx(1 / 10)
    assert ncr(["a", "b"], RANKED) == pytest.approx(7 / 10)
    assert ncr([], RANKED) == 0.0


def test_hits_are_those_of_the_top():
    assert hits(["d", "x", "a"], RANKED) == 2


def test_the_squared_error_is_of_the_found_top_values_alone():
    true = {"a": 100.0, "b": 50.0, "c": 10.0, "d": 5.0}
    assert squared_error({"a": 90.0, "d": 8.0, "x": 1e6}, true, RANKED) == pytest.approx((100 + 9) / 2)
    assert math.isnan(squared_error({"x": 1.0}, true, RANKED))


def test_a_value_twice_is_refused():
    with pytest.raises(InvalidValue, match="found"):
        ncr(["a", "a"], RANKED)
    with pytest.raises(InvalidValue, match="ranked"):
        hits(["a"], ["a", "a"])
    with pytest.raises(InvalidValue, match="ranked"):
        ncr(["a"], [])


def baskets_of(sets: list[set[int]], domain: int) -> Baskets:
    offsets = np.cumsum([0, *map(len, sets)])
    return Baskets(offsets, np.array([item for items in sets for item in sorted(items)], dtype=np.int64), domain)


def some_baskets(seed: int) -> list[set[int]]:
    rng = Random(seed=seed)
    chance = 2 ** np.arange(16, 8, -1)  # items 0 to 7, each held half as often as the one before
    return [{item for item in range(8) if rng.below(1 << 16, 1)[0] < chance[item]} for _ in range(200)]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_the_top_is_that_of_a_list_of_all_itemsets(seed: int, k: int):
    sets = some_baskets(seed)
    itemsets = [itemset for size in range(1, 9) for itemset in combinations(range(8), size)]
    supports = {itemset: sum(items.issuperset(itemset) for items in sets) for itemset in itemsets}
    top = top_itemsets(baskets_of(sets, 8), k)
    assert list(top.values()) == sorted(supports.values(), reverse=True)[:k]
    assert all(supports[itemset] == support for itemset, support in top.items())


def test_the_example_of_the_chapter():
    sets = [set(word) for word in ("ace", "bde", "abe", "ade", "af")]
    top = top_itemsets(baskets_of([{ord(item) - ord("a") for item in items} for items in sets], 6), 3)
    assert top == {(0,): 4, (4,): 4, (0, 4): 3}


def test_no_more_than_there_are():
    assert top_itemsets(baskets_of([{1}, set(), {1, 2}], 9), 50) == {(1,): 2, (2,): 1, (1, 2): 1}
    assert top_items(baskets_of([set(), set()], 9), 50) == {}
    assert top_itemsets(baskets_of([set(), set()], 9), 50) == {}


def test_no_top_of_nothing():
    with pytest.raises(InvalidValue, match="k"):
        top_itemsets(baskets_of([{1}], 9), 0)


DOMAIN = Sets(Ordinal(300), most=20)
RATES = 0.6 * 0.8 ** np.arange(300)  # item i is held with this probability, independently


@pytest.fixture(scope="module")
def crowd() -> ItemSets:
    rng = Random(seed=1)
    cut = np.ldexp(RATES, 32).astype(np.uint64)
    rows = [np.flatnonzero(rng.uint32(300) < cut)[:20] for _ in range(20_000)]
    return ItemSets(np.cumsum([0, *map(len, rows)]), np.concatenate(rows), domain=300)


def asks_of(protocol: Generator[Message, Reply, Shares], crowd: ItemSets) -> list[Ask]:
    fleet, asks = Fleet(SetStream(crowd), Random(seed=2)), []
    try:
        ask = next(protocol)
        while True:
            assert isinstance(ask, Ask)
            asks.append(ask)
            ask = protocol.send(fleet.answer(ask))
    except StopIteration:
        return asks


@pytest.mark.parametrize("itemsets", [False, True])
@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: rung.name)
def test_everyone_is_asked_once_with_the_whole_budget(rung: Rung, itemsets: bool, crowd: ItemSets):
    asks = asks_of(mine_by(rung, DOMAIN, epsilon=3.0, k=8, itemsets=itemsets), crowd)
    arcs = [ask.cohort for ask in asks]
    assert all(before.start + before.length == after.start for before, after in pairwise(arcs))
    assert arcs[0].start == 0
    assert CIRCLE - 100 < sum(arc.length for arc in arcs) <= CIRCLE
    assert [round(100 * arc.share) for arc in arcs] == list(rung.percents(itemsets=itemsets))
    assert all(2.99 < ask.mechanism.effective_epsilon <= 3.0 for ask in asks)


def test_the_groups_are_those_of_the_chapter():
    groups = [(rung.percents(itemsets=False), rung.percents(itemsets=True)) for rung in LADDER]
    miner, two, svim = ((10, 40, 50), (5, 20, 25, 50)), ((50, 50), (25, 25, 50)), ((50, 10, 40), (25, 5, 20, 10, 40))
    assert groups == [miner, miner, two, two, svim, svim]


def test_ldp_miner_is_as_the_chapter_has_it(crowd: ItemSets):
    sizes, names, reports = asks_of(mine_by(LDP_MINER, DOMAIN, epsilon=2.0, k=8), crowd)
    first: Any = names.mechanism
    second: Any = reports.mechanism
    assert sizes.cohort.share == pytest.approx(0.1)
    assert type(first.inner).__name__ == "BLH"
    # The sizes are about normal with mean 3: with 20 values at most one in twenty studies has a false one.
    assert abs(first.length - np.quantile(crowd.sizes, 0.9)) <= 1
    assert type(second.inner).__name__ == "SUE"
    assert second.length == second.size == 16


def test_ldp_miner_as_published_asks_everyone_twice_with_half_of_the_budget(crowd: ItemSets):
    asks = asks_of(ldp_miner(DOMAIN, epsilon=2.0, k=8, length=5), crowd)
    assert [ask.cohort.share for ask in asks] == [1.0, 1.0]
    assert [ask.mechanism.epsilon for ask in asks] == [1.0, 1.0]
    lengths: list[Any] = [ask.mechanism for ask in asks]
    assert [mechanism.length for mechanism in lengths] == [5, 16]


@pytest.mark.parametrize("itemsets", [False, True])
def test_svim_as_deployed_is_the_protocol_that_is_deployed(itemsets: bool, crowd: ItemSets):
    def deployed() -> Generator[Message, Reply, Shares]:
        mined = yield from mine(DOMAIN, epsilon=3.0, k=8, itemsets=itemsets)
        return dict(zip(mined.sets, mined.estimate.value.tolist(), strict=True))

    rung = mine_by(DEPLOYED, DOMAIN, epsilon=3.0, k=8, itemsets=itemsets)
    assert found_by(rung, crowd, Random(seed=3)) == found_by(deployed(), crowd, Random(seed=3))


def test_svim_is_as_printed_and_a_length_of_chance_multiplies_its_shares():
    assert replace(SVIM, name=DEPLOYED.name, published=False) == DEPLOYED
    # Everyone holds one of four items. Of sixty seeds this is one of the six where chance made another length
    # significant: by the text all shares are then multiplied.
    crowd = ItemSets(np.arange(2001), np.arange(2000) % 4, domain=300)
    printed, deployed = (
        found_by(mine_by(rung, DOMAIN, epsilon=2.0, k=16), crowd, Random(seed=10)) for rung in (SVIM, DEPLOYED)
    )
    assert max(printed.values()) > 0.4
    assert max(deployed.values()) == pytest.approx(0.25, abs=0.05)


def test_the_update_makes_the_same_items_larger(crowd: ItemSets):
    plain, updated = (found_by(mine_by(rung, DOMAIN, epsilon=3.0, k=8), crowd, Random(seed=4)) for rung in LADDER[-2:])
    assert list(plain) == list(updated)
    factors = [updated[items] / plain[items] for items in plain]
    assert 1.0 < factors[0] < 1.3
    assert factors == pytest.approx([factors[0]] * 8)


@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: rung.name)
def test_every_rung_finds_what_is_plain_to_see(rung: Rung, crowd: ItemSets):
    # Items 0 and 1 are held by 60% and 48%. Of the noisiest rung, LDPMiner, the second phase has a standard error of
    # 16 * 0.09 / sqrt(10,000) = 1.4%, and the third item is 20 of those away from missing among the 4 that are wanted.
    found = found_by(mine_by(rung, DOMAIN, epsilon=4.0, k=4), crowd, Random(seed=5))
    assert {(0,), (1,)} <= set(found)
    truth = crowd.support() / len(crowd)
    assert found[(0,)] == pytest.approx(truth[0], abs=0.12)


def test_sizes_above_the_longest_count_as_that(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("hubbub_papers.baselines.mining_ladder.LONGEST", 3)
    crowd = ItemSets(np.arange(0, 50_001, 5), np.tile(np.arange(5), 10_000), domain=300)
    asks = asks_of(mine_by(LDP_MINER, DOMAIN, epsilon=4.0, k=4), crowd)
    mechanism: Any = asks[1].mechanism
    assert mechanism.length == 3
