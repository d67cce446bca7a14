"""Sequential shuffling: layers, orders, fakes, and what a shuffler can do unseen."""

import numpy as np
import pytest

from hubbub import Random
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.shuffle.onion import LAYER_BYTES, OnionKey, missing_checks, peel, shuffle_onions, wrap

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
    onion = onions_of(np.uint64([7]), keys)
    assert peel(onion, keys[0], BATCH, place=0).unreadable == 0
    for key, batch, place in [(keys[1], BATCH, 0), (keys[0], "another", 0), (keys[0], BATCH, 1)]:
        assert peel(onion, key, batch, place=place) == ([], 1, 0)
    for broken in (onion[0][:-1], onion[0] + b"x", b"", bytes(len(onion[0]))):
        assert peel([broken], keys[0], BATCH, place=0).unreadable == 1


def test_a_report_that_comes_twice_counts_once(keys):
    onions = onions_of(np.uint64([7, 8]), keys)
    assert peel([*onions, onions[0]], keys[0], BATCH, place=0).repeated == 1


def test_batches_below_the_minimum_go_nowhere(keys):
    with pytest.raises(InvalidValue, match="at least 3"):
        shuffle_onions(
            onions_of(np.uint64([7, 8]), keys), keys[0], BATCH, place=0, rest=[], least=3, rng=Random(seed=1)
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
