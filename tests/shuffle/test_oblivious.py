"""Private encrypted oblivious shuffle: what comes out, who can know what, and what a party can break."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from hubbub import GRR, Random
from hubbub.core.errors import InvalidValue
from hubbub.privacy.fakes import estimate_without_fakes
from hubbub.shuffle.dgk import DGKPrivate
from hubbub.shuffle.in_memory import shares_of, shuffle_in_memory
from hubbub.shuffle.oblivious import (
    ObliviousShuffle,
    SecretShares,
    ShuffleAborted,
    combine,
    hands_on,
    hider_sets,
    holders,
    steps,
)
from hubbub.shuffle.report_numbers import from_numbers, to_numbers
from tests.shared.coverage import refused_coverage


@pytest.fixture(scope="module")
def key():
    return DGKPrivate.generate(2048)


def seeds_of(shufflers, seed=1):
    return [Random(seed=f"{seed}.{me}").bytes(32) for me in range(shufflers)]


def shuffled(reports, key=None, *, shufflers=3, fakes=0, seed=1):
    """The reports that come out, in their order, and the run."""
    public = None if key is None else key.public
    shares = shares_of(reports, shufflers, public, Random(seed=f"shares {seed}"))
    run = shuffle_in_memory(shares, seeds_of(shufflers, seed), public, fakes=fakes)
    if key is None:
        return np.sum([np.frombuffer(result, "<u8") for result in run.results], axis=0, dtype=np.uint64), run
    return combine(run.results, len(reports) + fakes, key).reports, run


@pytest.mark.parametrize("shufflers", [3, 4, 5, 7])
def test_the_reports_come_out_with_the_fakes_and_ciphertexts_change_nothing(key, shufflers):
    reports = Random(seed=1).uint64(20)
    came, _ = shuffled(reports, key, shufflers=shufflers, fakes=7)
    assert came.tolist() == shuffled(reports, shufflers=shufflers, fakes=7)[0].tolist()
    assert len(came) == 27
    assert set(reports.tolist()) <= set(came.tolist())
    assert came[:20].tolist() != reports.tolist()


def test_what_is_repeated_comes_out_the_same(key):
    shares = shares_of(Random(seed=1).uint64(10), 3, key.public, Random(seed=2))
    runs = [shuffle_in_memory(shares, seeds_of(3), key.public, fakes=2).transcript for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("runs", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_intervals_cover_the_truth(runs):
    """Reports of GRR with fakes, through an oblivious shuffle of shares in memory: 95% intervals of the first share."""
    mechanism, people, fakes = GRR(epsilon=2.0, domain=4), 400, 100
    covered = 0
    for run in range(runs):
        rng = Random(seed=f"coverage {run}")
        values = (rng.uint64(people) % np.uint64(4) // np.uint64(2)).tolist()
        numbers = to_numbers(mechanism, mechanism.randomize(values, rng), rng)
        came, _ = shuffled(numbers, fakes=fakes, seed=f"coverage {run}")
        sketch = mechanism.accumulate(from_numbers(mechanism, came))
        estimate = estimate_without_fakes(mechanism, sketch, fakes)
        low, high = (float(bound[0]) for bound in estimate.interval(0.95))
        covered += low <= values.count(0) / people <= high
    assert not refused_coverage(covered, runs, least=0.93, most=0.97)


def test_fakes_are_the_sum_of_all_draws(key):
    reports = Random(seed=3).uint64(30)
    came, _ = shuffled(reports, key, fakes=5)
    drawn = np.sum([Random(seed=seed).child("fakes").uint64(5) for seed in seeds_of(3)], axis=0, dtype=np.uint64)
    assert sorted(came.tolist()) == sorted(np.concatenate([reports, drawn]).tolist())


def _chi2_of_fakes(monkeypatch, dishonest):
    """How unevenly 320 fakes fall into 16 equal parts: chi2 of 15 degrees of freedom if they are uniform."""
    monkeypatch.setattr(
        "hubbub.shuffle.in_memory.fake_shares",
        lambda seed, fakes: (
            np.zeros(fakes, dtype=np.uint64)
            if seed in [seeds_of(3)[me] for me in dishonest]
            else Random(seed=seed).child("fakes").uint64(fakes)
        ),
    )
    came = shuffled(np.array([7], dtype=np.uint64), fakes=320)[0].tolist()
    came.remove(7)
    counts = np.bincount(np.array(came, dtype=np.uint64) >> np.uint64(60), minlength=16)
    return float(((counts - 20) ** 2 / 20).sum())


@pytest.mark.parametrize("honest", [0, 2])
def test_one_honest_shuffler_makes_fakes_uniform(monkeypatch, honest):
    assert _chi2_of_fakes(monkeypatch, {0, 1, 2} - {honest}) < 44.3  # p = 1e-4


def test_without_an_honest_shuffler_fakes_are_what_they_choose(monkeypatch):
    assert _chi2_of_fakes(monkeypatch, {0, 1, 2}) > 1000


@pytest.mark.parametrize("shufflers", [3, 4, 5, 7])
def test_no_half_of_the_shufflers_knows_every_permutation(shufflers):
    for coalition in combinations(range(shufflers), shufflers // 2 if shufflers % 2 else shufflers // 2 - 1):
        unknown = [hiders for hiders in hider_sets(shufflers) if not set(hiders) & set(coalition)]
        assert unknown, coalition


@pytest.mark.parametrize(("shufflers", "times"), [(3, 2), (4, 2), (5, 3), (7, 4)])
def test_ciphertexts_are_handed_on_as_seldom_as_can_be(shufflers, times):
    # The rounds need hiders; whoever is missing from a set has to hand the ciphertexts on before that round.
    order = [*dict.fromkeys(holders(shufflers))]
    assert len(order) == times  # and the last of them hands them to the server
    assert all(holder in hiders for holder, hiders in zip(holders(shufflers)[1:], hider_sets(shufflers), strict=True))
    assert [hands_on(me, shufflers) for me in range(shufflers)] == [me in order for me in range(shufflers)]


@pytest.mark.parametrize("runs", [90, pytest.param(900, marks=pytest.mark.slow)])
def test_every_order_is_as_likely(runs):
    # Three reports have six orders. chi2 of 5 degrees of freedom: p = 1e-4 at 25.7.
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(runs):
        order = tuple(shuffled(np.arange(3, dtype=np.uint64), seed=seed)[0].tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert sum((count - runs / 6) ** 2 / (runs / 6) for count in counts.values()) < 25.7


def test_a_ciphertext_without_a_message_costs_its_own_row(key):
    shares = shares_of(np.arange(9, dtype=np.uint64), 3, key.public, Random(seed=1))
    encrypted: Any = shares[2].encrypted
    encrypted[4] = 2  # in the group, but of another order
    run = shuffle_in_memory(shares, seeds_of(3), key.public, fakes=0)
    combined = combine(run.results, 9, key)
    assert combined.dropped == 1
    assert sorted(combined.reports.tolist()) == [0, 1, 2, 3, 5, 6, 7, 8]


def test_shares_that_cannot_be_read_are_refused(key):
    shares = shares_of(np.arange(9, dtype=np.uint64), 3, key.public, Random(seed=1))
    first, holder, last = shuffle_in_memory(shares, seeds_of(3), key.public).results
    for wrong in ([first[:-8], holder, last], [first, holder[: 9 * 8], last], [holder, first, last]):
        with pytest.raises(ShuffleAborted, match="shares that can be read"):
            combine(wrong, 9, key)
    with pytest.raises(InvalidValue, match="shufflers"):
        hider_sets(2)
    party = ObliviousShuffle(1, 3, b"s" * 32, 9, key.public)
    permute = next(step for step in steps(1, 3) if step.does == "permute")
    with pytest.raises(ShuffleAborted, match="32 bytes"):
        party.take(permute, shares[1], {**dict.fromkeys(permute.needs, bytes(72)), (2, "seeds"): b"short"}, None)
    with pytest.raises(InvalidValue, match="as many as there are reports"):
        party.take(permute, SecretShares(np.zeros(8, dtype=np.uint64)), {}, None)


@pytest.mark.parametrize("shufflers", [3, 5])
def test_every_message_has_the_size_that_its_receiver_expects(key, shufflers):
    _, run = shuffled(Random(seed=1).uint64(6), key, shufflers=shufflers, fakes=2)
    seeds = seeds_of(shufflers)
    parties = [ObliviousShuffle(me, shufflers, seed, 8, key.public) for me, seed in enumerate(seeds)]
    for sender, to, topic, body in run.transcript:
        if to < shufflers:
            assert parties[to].most_bytes(sender, topic) == len(body), (sender, to, topic)
    assert parties[0].most_bytes(1, "share 99") is None
    assert parties[0].most_bytes(1, "hide 0") is None  # shuffler 0 hides nothing in the first round
