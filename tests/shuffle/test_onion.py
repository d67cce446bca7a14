"""Sequential shuffling: layers, orders, fakes, what a shuffler can do unseen; reports as numbers, and back."""

import numpy as np
import pytest

import hubbub as hb
from hubbub import Random
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.shuffle.onion import LAYER_BYTES, OnionKey, missing_checks, peel, shuffle_onions, wrap
from hubbub.shuffle.report_numbers import from_numbers, to_numbers, uniform_reports

BATCH = "emoji.1.popular.0.7"


@pytest.fixture(scope="module")
def keys():
    return [OnionKey.generate() for _ in range(4)]  # three shufflers and the server


def through(onions, keys, *, fakes=0, change=None):
    """A batch through all shufflers; `change` is what a dishonest second one does to what it hands on."""
    route = [key.public for key in keys]
    for place, key in enumerate(keys[:-1]):
        rng = Random(seed=place)
        drawn = [rng.uint64(1).tobytes() for _ in range(fakes)]
        turn = shuffle_onions(onions, key, BATCH, place=place, rest=route[place + 1 :], fakes=drawn, least=1, rng=rng)
        onions = turn.inside if change is None or place != 1 else change(turn.inside)
    return peel(onions, keys[-1], BATCH, place=len(keys) - 1)


def onions_of(reports, keys):
    return [wrap(report.tobytes(), [key.public for key in keys], BATCH) for report in reports]


def test_the_reports_come_out_with_the_fakes_in_another_order(keys):
    reports = Random(seed=1).uint64(50)
    onions = onions_of(reports, keys)
    assert {len(onion) for onion in onions} == {8 + 4 * LAYER_BYTES}
    came = through(onions, keys, fakes=5).inside
    assert len(came) == 65
    assert {report.tobytes() for report in reports} <= set(came)
    assert came[:50] != [report.tobytes() for report in reports]


def test_no_layer_opens_elsewhere(keys):
    onion = onions_of(np.array([7], "u8"), keys)
    assert peel(onion, keys[0], BATCH, place=0).unreadable == 0
    for key, batch, place in [(keys[1], BATCH, 0), (keys[0], "another", 0), (keys[0], BATCH, 1)]:
        assert peel(onion, key, batch, place=place) == ([], 1, 0)
    for broken in (onion[0][:-1], onion[0] + b"x", b"", bytes(len(onion[0]))):
        assert peel([broken], keys[0], BATCH, place=0).unreadable == 1


def test_a_report_that_comes_twice_counts_once(keys):
    onions = onions_of(np.array([7, 8], "u8"), keys)
    assert peel([*onions, onions[0]], keys[0], BATCH, place=0).repeated == 1


def test_batches_below_the_minimum_go_nowhere(keys):
    with pytest.raises(InvalidValue, match="at least 3"):
        shuffle_onions(
            onions_of(np.array([7, 8], "u8"), keys), keys[0], BATCH, place=0, rest=[], least=3, rng=Random(seed=1)
        )


def test_reports_of_two_sizes_are_refused(keys):
    route = [key.public for key in keys]
    onions = [wrap(b"short", route, BATCH), wrap(b"longer", route, BATCH)]
    with pytest.raises(DecodeError, match="one size"):
        shuffle_onions(onions, keys[0], BATCH, place=0, rest=route[1:], least=1, rng=Random(seed=1))


def test_spot_checks_find_who_replaces_reports(keys):
    rng = Random(seed=5)
    reports, checks = rng.uint64(160), rng.uint64(40)
    onions = onions_of([*reports, *checks], keys)
    wanted = [check.tobytes() for check in checks]
    assert missing_checks(through(onions, keys).inside, wanted) == 0

    def replace(handed_on):
        # 30 of 200 are replaced by reports of its own: none of the 40 checks is hit with probability 0.8^30, 1 in 800.
        forged = [wrap(bytes(8), [key.public for key in keys[2:]], BATCH, place=2) for _ in range(30)]
        return [*handed_on[30:], *forged]

    assert missing_checks(through(onions, keys, change=replace).inside, wanted) > 0
    assert missing_checks(through(onions, keys, change=lambda handed_on: handed_on[30:]).inside, wanted) > 0


def test_keys_are_checked_and_not_shown():
    key = OnionKey.generate()
    assert key.private.hex() not in repr(key)
    with pytest.raises(InvalidValue, match="private"):
        OnionKey(b"short")
    with pytest.raises(InvalidValue, match="route"):
        wrap(b"report", [b"short"], BATCH)


N = 40_000
NAMES = ["a", "b", "c", "d", "e"]
ORACLES = [
    hb.GRR(epsilon=3.0, domain=NAMES),
    hb.OLH(epsilon=3.0, domain=300),
    hb.SOLH(epsilon=3.0, domain=300, buckets=16),
]


@pytest.mark.parametrize(
    "mechanism", [hb.GRR(epsilon=1.0, domain=10), hb.GRR(epsilon=3.0, domain=60_000), hb.SOLH(epsilon=2.0, domain=99)]
)
def test_numbers_come_back_as_they_were_and_cover_all_sizes(mechanism):
    reports = mechanism.randomize(np.zeros(4000, dtype=np.int64), hb.Random(seed=1))
    numbers = to_numbers(mechanism, reports, hb.Random(seed=2))
    assert mechanism.accumulate(from_numbers(mechanism, numbers)) == mechanism.accumulate(reports)
    # The highest four bits are uniform, as of any number: chi2 of 15 degrees of freedom, p = 1e-4 at 44.3.
    counts = np.bincount(numbers >> np.uint64(60), minlength=16)
    assert ((counts - 250) ** 2 / 250).sum() < 44.3
    every = hb.Random(seed=3).uint64(1000)
    mechanism.check(from_numbers(mechanism, every))


def test_what_has_no_numbers():
    oue = hb.OUE(epsilon=1.0, domain=3)
    with pytest.raises(InvalidValue, match="SOLH or GRR"):
        to_numbers(oue, oue.randomize([1], hb.Random(seed=1)), hb.Random(seed=2))
    with pytest.raises(DecodeError, match="numbers"):
        from_numbers(hb.GRR(epsilon=1.0, domain=3), np.arange(3))


def furthest(oracle: FrequencyOracle, reports: Reports) -> float:
    """By how many standard deviations the support of some values is off what uniform reports give each of them."""
    expected = 1 / (oracle.size if isinstance(oracle, hb.GRR) else oracle.buckets)  # type: ignore[attr-defined]
    supports = oracle.accumulate(reports).counts[:5]
    return float(np.abs((supports - N * expected) / np.sqrt(N * expected * (1 - expected))).max())


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: type(oracle).__name__)
def test_every_value_is_supported_as_often_as_chance_says(oracle: FrequencyOracle) -> None:
    """Five values within 4.9 deviations: by chance it fails in one of 200,000 runs. Reports of people are far off."""
    reports = uniform_reports(oracle, N, hb.Random(seed=5))
    assert furthest(oracle, reports) < 4.9
    planted = oracle.randomize(oracle.example_values(1) * N, hb.Random(seed=5))
    assert furthest(oracle, planted) > 4.9
    assert len(uniform_reports(oracle, 0, hb.Random(seed=5))) == 0


def test_other_mechanisms_have_no_uniform_fakes() -> None:
    with pytest.raises(InvalidValue, match="whose fakes are uniform"):
        uniform_reports(hb.OUE(epsilon=1.0, domain=3), 1, hb.Random(seed=1))
