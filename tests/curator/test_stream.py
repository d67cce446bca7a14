"""ToPS as an object: batches and single values agree, the noise is the tree's, bad values change nothing."""

import copy
import math
import os
import pickle
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.curator.files import state_from_bytes, state_to_bytes
from hubbub.curator.stream import StreamCopied, ToPSStream
from hubbub.curator.tops import FOLLOWS, ToPS, best_pruned
from hubbub.kernels.curator import FINE, SMOOTHERS
from hubbub.random.source import Random

VALUES = np.minimum(np.random.default_rng(1).gamma(1.5, 25, 6000), 2000.0)


def tops(**changes: Any) -> ToPS:
    settings = {"epsilon": 0.5, "bound": 2000.0, "holdout": 700, "max_range": 4096, "fan_out": 8, "pruned": 1}
    return ToPS(**{**settings, **changes})


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("smoother", SMOOTHERS)
@pytest.mark.parametrize("watch", [0.0, 0.3])
def test_a_batch_is_the_same_as_one_by_one(smoother: str, watch: float) -> None:
    settings = tops(smoother=smoother, watch=watch, period=300, follow="update")
    whole = settings.start(Random(seed=3)).push_many(VALUES)
    single = settings.start(Random(seed=3))
    few = VALUES[:2500]
    assert same(whole[: few.size], np.array([single.push(value) for value in few], dtype=float))
    pieces = settings.start(Random(seed=3))
    assert same(whole, np.concatenate([pieces.push_many(part) for part in np.array_split(VALUES, 37)]))


@pytest.mark.parametrize("follow", FOLLOWS)
@pytest.mark.parametrize("cut", [0, 1, 699, 700, 1234, 5999])
def test_a_stream_goes_on_from_its_state_with_the_same_values(follow: str, cut: int) -> None:
    """At an epsilon of a million noise is a cell or two, in whichever tree, and the threshold is the bound, which many
    values reach: what is left is what the state has."""
    settings = tops(epsilon=1e6, smoother="median", watch=0.3, period=300, follow=follow)
    values = np.minimum(20 * VALUES, 2000.0)
    whole = settings.start(Random(seed=4)).push_many(values)
    first = settings.start(Random(seed=4))
    before = first.push_many(values[:cut])
    second = ToPSStream(settings, Random(seed=5), state=state_from_bytes(settings, state_to_bytes(first.state)))
    after = second.push_many(values[cut:])
    assert np.concatenate([before, after]) == pytest.approx(whole, abs=0.5, nan_ok=True)
    assert second.position == VALUES.size


@pytest.mark.parametrize("cut", [64 + 8, 64 + 256, 64 + 256 + 3, 64 + 700])
def test_streams_that_go_on_from_one_state_share_no_noise(cut: int) -> None:
    """Two go on with other values, and a third one with the first one's key: with that, the test finds it out."""
    settings = tops(holdout=64, fan_out=4, max_range=1024)
    stream = settings.start(Random(seed=4))
    stream.push_many(VALUES[:cut])
    state = stream.state
    start, theta = cut - state.inside, state.theta

    def block_noise(going_on: ToPSStream, values: np.ndarray) -> np.ndarray:
        head = np.full(state.inside, state.memory[0])  # as predicted, and published before
        published = np.concatenate([head, going_on.push_many(values[cut:])])[:1024]
        truth = np.minimum(np.concatenate([VALUES[start:cut], values[cut:]]), theta)[:1024]
        return (published - truth).reshape(-1, 4).sum(axis=1)

    own = block_noise(stream, VALUES)
    halves = VALUES / 2
    first, second, third = (
        block_noise(ToPSStream(settings, Random(seed=seed), state=state), values)
        for seed, values in ((5, VALUES), (6, halves), (5, halves))
    )
    least = 1e-3 * theta  # of noise whose deviation is about 10 thetas
    for left, other in ((own, first), (own, second), (first, second)):
        assert (np.abs(left - other) > least).mean() > 0.99
    assert (np.abs(first - third) < least).all()


def test_a_state_has_no_value_of_a_block_that_ended() -> None:
    """Nor noise: where a block ends and nothing is searched for, it has no sum of true values at all."""
    settings = tops(holdout=64, fan_out=4, max_range=1024)
    stream = settings.start(Random(seed=4), theta=100.0)
    stream.push_many(VALUES[:402])
    assert stream.state.inside == 2
    assert stream.state.partial > 0
    stream.push_many(VALUES[402:404])
    state = stream.state
    assert (state.inside, state.partial, int(state.counts.sum())) == (0, 0, 0)
    assert not {"key", "tree_key", "noise"} & set(state._fields)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_is_not_copied(duplicate: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="a ToPSStream is neither copied nor stored"):
        duplicate(tops().start(Random(seed=1)))


def test_a_stream_goes_on_in_its_own_process_only(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = tops().start(Random(seed=1))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(StreamCopied, match="begun before a fork"):
        stream.push(1.0)
    monkeypatch.undo()
    assert stream.position == 0
    assert stream.push(1.0) is None


def test_blocks_add_up_to_true_sums_plus_the_noise_of_the_tree() -> None:
    settings = tops(smoother="exponential")
    stream = settings.start(Random(seed=5))
    published = stream.push_many(VALUES)[700:]
    theta, cells = stream.segments[0].theta, settings.tree.cells
    again = settings.start(Random(seed=5))
    again.push_many(VALUES[:701])
    noise = again._noise
    assert noise is not None
    length = settings.tree_length
    assert noise.size * settings.block == length == 512
    clipped = np.minimum(VALUES[700 : 700 + length], theta)
    exact = np.floor(clipped * (cells / theta) + 0.5).reshape(-1, 8).sum(axis=1)
    expected = (exact * FINE + noise) * (theta / cells / FINE)
    assert published[:length].reshape(-1, 8).sum(axis=1) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert published[:length:8][0] == pytest.approx(theta / 2)  # nothing to predict from yet


def test_each_tree_has_noise_of_its_own() -> None:
    settings = tops(pruned=0, holdout=1)
    stream = settings.start(Random(seed=6))
    published = stream.push_many(np.zeros(1 + 2 * settings.tree_length))[1:]
    first, second = np.split(published, 2)
    assert not np.isin(first, second).any()


@pytest.mark.parametrize(
    ("bad", "message"), [(-0.5, "-0.5"), (2000.5, "2000.5"), (math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf")]
)
def test_bad_values_are_named_and_change_nothing(bad: float, message: str) -> None:
    stream, twin = (tops().start(Random(seed=7)) for _ in range(2))
    stream.push_many(VALUES[:1000])
    twin.push_many(VALUES[:1000])
    with pytest.raises(InvalidValue, match=rf"position 1002: got {message}; allowed: a number from 0 to 2000"):
        stream.push_many([1.0, 2.0, bad, 3.0])
    with pytest.raises(InvalidValue, match="numbers"):
        stream.push_many(["many"])
    assert same(stream.push_many(VALUES[1000:]), twin.push_many(VALUES[1000:]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epsilon", 0.0),
        ("epsilon", math.nan),
        ("epsilon", 1e-12),
        ("bound", -1.0),
        ("bound", math.inf),
        ("holdout", 0),
        ("max_range", 1),
        ("fan_out", 1),
        ("pruned", 4),
        ("pruned", -1),
        ("smoother", "guess"),
        ("noise", "gauss"),
        ("follow", "me"),
        ("watch", 1.0),
        ("weight", 2.0),
        ("window", 0),
        ("period", -1),
    ],
)
def test_bad_settings_are_named(field: str, value: object) -> None:
    with pytest.raises(InvalidValue, match=field):
        tops(**{field: value})


def test_a_block_whose_sum_could_overflow_is_refused() -> None:
    with pytest.raises(InvalidValue, match="pruned: got 3; allowed: fewer"):
        tops(epsilon=5.0, fan_out=1024, max_range=1 << 40, pruned=3)


def test_what_a_value_costs_is_exact() -> None:
    plain, watched = tops(epsilon=0.3), tops(epsilon=0.3, watch=0.25)
    assert plain.exact_epsilon == max(plain.search.effective_epsilon, plain.tree.effective_epsilon) <= Fraction(0.3)
    assert watched.watcher is not None
    both = watched.tree.effective_epsilon + watched.watcher.effective_epsilon
    assert watched.exact_epsilon == max(watched.search.effective_epsilon, both) <= Fraction(0.3)
    assert Fraction(watched.effective_epsilon) >= watched.exact_epsilon


def test_the_best_number_of_pruned_layers_is_equation_7() -> None:
    for epsilon in (0.01, 0.05, 0.1, 1.0):
        errors = [15 * (5 - s) ** 3 * 2 / epsilon**2 + 16 ** (2 * s) / 4 / 9 for s in range(5)]
        assert best_pruned(epsilon, 16, 5) == int(np.argmin(errors))


@pytest.mark.parametrize(("pruned", "stops"), [(0, []), (1, []), (2, []), (1, [71, 88, 250])])
def test_intervals_of_ranges_hold_the_clipped_truth(pruned: int, stops: list[int]) -> None:
    """200 ranges of whole blocks: 95% hold it, within 5 standard errors (1.54% each).

    Each is of a stream of its own, which is not stopped, or three times, twice inside a block: over several trees then.
    """
    settings = tops(pruned=pruned, holdout=64, fan_out=4, max_range=256, candidates=64)
    rng, hits, values = np.random.default_rng(2), 0, VALUES[: 64 + 256]
    for run in range(200):
        stream, published = settings.start(Random(seed=run)), np.array([])
        for number, part in enumerate(np.split(values, stops)):
            stream = ToPSStream(settings, Random(seed=f"{run}, {number}"), state=stream.state)
            published = np.concatenate([published, stream.push_many(part)])
        first, last = np.sort(rng.choice(256 // settings.block + 1, 2, replace=False)) * settings.block + 64
        answer = stream.range_sum(published, int(first), int(last))
        assert answer.bias == "none"
        low, high = answer.interval()
        hits += low[0] <= np.minimum(values[first:last], stream.theta or 0.0).sum() <= high[0]
    assert 0.873 < hits / 200 <= 1
    assert [segment.first for segment in stream.segments] == ([64, 68, 88, 248] if stops else [64])


def test_ranges_that_were_not_published_are_refused() -> None:
    stream = tops().start(Random(seed=1))
    published = stream.push_many(VALUES[:1000])
    for first, last in ((0, 800), (900, 900), (900, 1001), (-1, 900)):
        with pytest.raises(InvalidValue, match="range"):
            stream.range_sum(published, first, last)


def test_drift_begins_a_new_search_and_a_steady_stream_none() -> None:
    """The values become ten times larger: the watcher sees it in its next period, and the threshold follows."""
    settings = tops(epsilon=2.0, watch=0.2, holdout=512, period=512, max_range=512)
    steady = settings.start(Random(seed=8))
    steady.push_many(np.tile(VALUES, 2))
    assert len(steady.segments) == 1
    drifting = settings.start(Random(seed=8))
    published = drifting.push_many(np.concatenate([VALUES, np.minimum(10 * VALUES, 2000)]))
    (_, before), (place, after) = drifting.segments
    assert after > 3 * before
    assert 6000 + 512 <= place < 6000 + 3 * 600
    assert np.isnan(published[place - 512 : place]).all()
    assert not np.isnan(published[512 : place - 512]).any()


def test_a_short_holdout_is_refined_while_publishing() -> None:
    settings = tops(epsilon=4.0, watch=0.3, follow="update", holdout=64, max_range=512)
    stream = settings.start(Random(seed=9))
    published = stream.push_many(VALUES)
    assert len(stream.segments) > 1
    assert not np.isnan(published[64:]).any()


def test_memory_of_the_largest_tree() -> None:
    """r = 2^20 without pruning: the noise of one tree, and what it is made from, stay below 32 MiB."""
    stream = ToPS(epsilon=1.0, bound=1.0, holdout=1, pruned=0).start(Random(seed=1))
    stream.push_many([0.5, 0.5])
    tracemalloc.start()
    stream.push_many(np.full(70_000, 0.5))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 32 << 20


@pytest.mark.parametrize("field", ["epsilon", "bound", "constant"])
@pytest.mark.parametrize("extreme", [5e-324, 1e-300, 1e300, 1.7e308])
def test_settings_whose_squares_leave_the_floats_are_refused(field: str, extreme: float) -> None:
    """Their variances would be 0 or infinite: an interval of no width, or a crash after the values are answered."""
    with pytest.raises(InvalidValue, match=field):
        tops(**{field: extreme, "pruned": None})
