"""The demo's collection: sound whatever the crowd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hubbub import Random
from hubbub.core.errors import InvalidValue
from hubbub.demo.crowd import SHARDS, SINGLES, Crowd, Demo, compare, demo, emoji_crowd, zipf_crowd
from hubbub.mechanisms import FAMILIES


@pytest.fixture(scope="module")
def run() -> Demo:
    return demo(zipf_crowd(20_000, Random(seed=1)), epsilon=4.0, rng=Random(seed=2))


def test_everyone_reports_once(run: Demo) -> None:
    assert len(run.clients) == SINGLES
    assert len(run.shards) == SHARDS + 1
    assert run.shards[0].n == SINGLES
    assert run.merged.n == run.crowd.n == sum(shard.n for shard in run.shards)


def test_merging_is_byte_identical_in_any_order(run: Demo) -> None:
    assert run.identical
    assert len(run.digests) == 3
    other = {**run.digests, "shuffled": "0" * 64}
    assert not replace(run, digests=other).identical


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, second = (demo(zipf_crowd(500, Random(seed=1)), epsilon=1.0, rng=Random(seed=2)) for _ in range(2))
    third = demo(zipf_crowd(500, Random(seed=1)), epsilon=1.0, rng=Random(seed=3))
    assert first.merged == second.merged
    assert first.clients == second.clients
    assert first.merged != third.merged


def test_a_report_moves_belief_by_no_more_than_epsilon(run: Demo) -> None:
    for client in run.clients:
        assert len(client.sent) == run.mechanism.report_bytes
        assert np.exp(-4.0) <= client.after / client.before <= np.exp(4.0)


def test_intervals_hold_the_truth(run: Demo) -> None:
    # 969 nearly independent intervals of 95%: the number that hold is 920.6 with deviation 6.8, and falls outside
    # these bounds with probability below 1e-8; intervals 30% too short would hold 804, and are seen to.
    assert 880 <= run.covered <= 960
    short = replace(run.estimate, variance=0.7**2 * run.estimate.variance)
    assert replace(run, estimate=short).covered < 880


def test_consistency_helps(run: Demo) -> None:
    assert run.crowd.error(run.consistent) < run.crowd.error(run.estimate)


def test_compare_has_every_mechanism_and_predicts_its_error() -> None:
    run = demo(zipf_crowd(3000, Random(seed=1)), epsilon=2.0, rng=Random(seed=2))
    steps: list[tuple[int, int, str]] = []
    compared = compare(run, Random(seed=3), progress=lambda *step: steps.append(step))
    names = list(FAMILIES["frequency"])
    assert compared[0].mechanism == type(run.mechanism).__name__
    assert sorted(other.mechanism for other in compared) == sorted(names)
    assert len(steps) == len(names) - 1
    for other in compared:
        assert len(other.estimates) == 3
        # A mean of 969 squares has a relative deviation near sqrt(2/969) = 4.5%, its root half that: 15% is 6 of them.
        # FLH's errors are not independent, its hash functions being few; it is held to a factor of two.
        if other.predicted is not None:
            near = 1.0 if other.mechanism == "FLH" else 0.15
            assert abs(other.measured / other.predicted - 1) < near, other


def test_the_emoji() -> None:
    crowd = emoji_crowd(None, Random(seed=1))
    assert (crowd.n, len(crowd.labels)) == (156_941, 969)
    assert crowd.names[0] == "face with tears of joy"
    assert len(set(crowd.names)) == 969
    assert all(name.isascii() for name in crowd.names)
    assert crowd.truth[0] == 14_622 / 156_941
    assert emoji_crowd(1000, Random(seed=1)).n == 1000


@pytest.mark.parametrize("n", [-1, 0, 99, 10_000_001])
def test_how_many_people(n: int) -> None:
    for crowd in (emoji_crowd, zipf_crowd):
        with pytest.raises(InvalidValue, match="n: got"):
            crowd(n, Random(seed=1))


def test_two_values_are_enough() -> None:
    crowd = Crowd("two", ("yes", "no"), ("yes", "no"), np.array([0, 1] * 100))
    run = demo(crowd, epsilon=1.0, rng=Random(seed=1))
    assert type(run.mechanism).__name__ == "GRR"
    assert run.merged.n == 200
