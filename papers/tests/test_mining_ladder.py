"""LDPMiner, the steps from it to SVIM, and what the figures make of them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hubbub.core.domain import Ordinal, Sets
from hubbub.core.domain.sets import ItemSets
from hubbub.protocols.ask import CIRCLE, Ask
from hubbub.protocols.driver import Message, Reply
from hubbub.protocols.itemsets.study import mine
from hubbub.random.source import Random
from hubbub.simulate.devices import SetStream
from hubbub.simulate.fleet import Fleet
from hubbub_papers.baselines.mining_ladder import DEPLOYED, LADDER, LDP_MINER, SVIM, Rung, Shares, ldp_miner, mine_by
from hubbub_papers.dissertation.chapter_5_mining import found_by

DOMAIN = Sets(Ordinal(300), most=20)
RATES = 0.6 * 0.8 ** np.arange(300)  # item i is held with this probability, independently


@pytest.fixture(scope="module")
def people() -> ItemSets:
    rng = Random(seed=1)
    cut = np.ldexp(RATES, 32).astype(np.uint64)
    rows = [np.flatnonzero(rng.uint32(300) < cut)[:20] for _ in range(20_000)]
    return ItemSets(np.cumsum([0, *map(len, rows)]), np.concatenate(rows), domain=300)


def asks_of(protocol: Generator[Message, Reply, Shares], people: ItemSets) -> list[Ask]:
    fleet, asks = Fleet(SetStream(people), Random(seed=2)), []
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
def test_everyone_is_asked_once_with_the_whole_budget(rung: Rung, itemsets: bool, people: ItemSets):
    asks = asks_of(mine_by(rung, DOMAIN, epsilon=3.0, k=8, itemsets=itemsets), people)
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


def test_ldp_miner_is_as_the_chapter_has_it(people: ItemSets):
    sizes, names, reports = asks_of(mine_by(LDP_MINER, DOMAIN, epsilon=2.0, k=8), people)
    first: Any = names.mechanism
    second: Any = reports.mechanism
    assert sizes.cohort.share == pytest.approx(0.1)
    assert type(first.inner).__name__ == "BLH"
    # The sizes are about normal with mean 3: with 20 values at most one in twenty studies has a false one.
    assert abs(first.length - np.quantile(people.sizes, 0.9)) <= 1
    assert type(second.inner).__name__ == "SUE"
    assert second.length == second.size == 16


def test_ldp_miner_as_published_asks_everyone_twice_with_half_of_the_budget(people: ItemSets):
    asks = asks_of(ldp_miner(DOMAIN, epsilon=2.0, k=8, length=5), people)
    assert [ask.cohort.share for ask in asks] == [1.0, 1.0]
    assert [ask.mechanism.epsilon for ask in asks] == [1.0, 1.0]
    lengths: list[Any] = [ask.mechanism for ask in asks]
    assert [mechanism.length for mechanism in lengths] == [5, 16]


@pytest.mark.parametrize("itemsets", [False, True])
def test_svim_as_deployed_is_the_protocol_that_is_deployed(itemsets: bool, people: ItemSets):
    def deployed() -> Generator[Message, Reply, Shares]:
        mined = yield from mine(DOMAIN, epsilon=3.0, k=8, itemsets=itemsets)
        return dict(zip(mined.sets, mined.estimate.value.tolist(), strict=True))

    rung = mine_by(DEPLOYED, DOMAIN, epsilon=3.0, k=8, itemsets=itemsets)
    assert found_by(rung, people, Random(seed=3)) == found_by(deployed(), people, Random(seed=3))


def test_svim_is_as_printed_and_a_length_of_chance_multiplies_its_shares():
    assert replace(SVIM, name=DEPLOYED.name, published=False) == DEPLOYED
    # Everyone holds one of four items. Of sixty seeds this is one of the six where chance made another length
    # significant: by the text all shares are then multiplied.
    people = ItemSets(np.arange(2001), np.arange(2000) % 4, domain=300)
    printed, deployed = (
        found_by(mine_by(rung, DOMAIN, epsilon=2.0, k=16), people, Random(seed=10)) for rung in (SVIM, DEPLOYED)
    )
    assert max(printed.values()) > 0.4
    assert max(deployed.values()) == pytest.approx(0.25, abs=0.05)


def test_the_update_makes_the_same_items_larger(people: ItemSets):
    plain, updated = (found_by(mine_by(rung, DOMAIN, epsilon=3.0, k=8), people, Random(seed=4)) for rung in LADDER[-2:])
    assert list(plain) == list(updated)
    factors = [updated[items] / plain[items] for items in plain]
    assert 1.0 < factors[0] < 1.3
    assert factors == pytest.approx([factors[0]] * 8)


@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: rung.name)
def test_every_rung_finds_what_is_plain_to_see(rung: Rung, people: ItemSets):
    # Items 0 and 1 are held by 60% and 48%. Of the noisiest rung, LDPMiner, the second phase has a standard error of
    # 16 * 0.09 / sqrt(10,000) = 1.4%, and the third item is 20 of those away from missing among the 4 that are wanted.
    found = found_by(mine_by(rung, DOMAIN, epsilon=4.0, k=4), people, Random(seed=5))
    assert {(0,), (1,)} <= set(found)
    truth = people.support() / len(people)
    assert found[(0,)] == pytest.approx(truth[0], abs=0.12)


def test_sizes_above_the_longest_count_as_that(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("hubbub_papers.baselines.mining_ladder.LONGEST", 3)
    people = ItemSets(np.arange(0, 50_001, 5), np.tile(np.arange(5), 10_000), domain=300)
    asks = asks_of(mine_by(LDP_MINER, DOMAIN, epsilon=4.0, k=4), people)
    mechanism: Any = asks[1].mechanism
    assert mechanism.length == 3
