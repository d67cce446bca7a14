"""Post-processing of ternary estimates: its constraints hold, and it brings estimates nearer to the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import hubbub as hb
from hubbub.consistency import capped, capped_signs, clip_means, conditional_means
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from tests.consistency.estimates import made

numbers = arrays(np.float64, st.integers(1, 20), elements=st.floats(-2, 2, allow_nan=False).map(lambda x: round(x, 3)))


def means(value) -> Estimate:
    return made(value, kind="quantity", noise=None)


@given(numbers, st.data())
def test_capped_frequencies_are_possible(value, data):
    most = data.draw(st.integers(0, len(value)))
    for exactly in (False, True):
        result = capped(made(value), most, exactly=exactly)
        assert result.bias == "consistent"
        assert ((result.value >= 0) & (result.value <= 1)).all()
        assert result.value.sum() <= most + 1e-9
        if exactly:
            assert result.value.sum() == pytest.approx(most, abs=1e-9)


@given(numbers, st.data())
def test_means_and_frequencies_belong_together(value, data):
    frequency = data.draw(arrays(np.float64, len(value), elements=st.floats(-1, 2, allow_nan=False)))
    mean, share = capped_signs(means(value), made(frequency), min(2, len(value)))
    assert (np.abs(mean.value) <= share.value + 1e-12).all()
    assert share.value.sum() <= 2 + 1e-9


def test_what_is_possible_already_stays():
    value = np.array([0.5, 0.25, 0.0])
    assert capped(made(value), 2).value.tolist() == value.tolist()
    assert clip_means(means(-value)).value.tolist() == (-value).tolist()


def test_conditional_means_are_cut_and_know_what_they_do_not_know():
    result = conditional_means(means([0.5, -0.1, 0.2]), made([0.25, 0.5, 0.0]))
    assert result.value.tolist() == pytest.approx([1.0, -0.2, 0.0])
    assert result.variance[2] == np.inf
    assert result.bias == "heuristic"


def test_what_does_not_fit_is_refused():
    for call in (
        lambda: capped(made([0.5]), 2),
        lambda: capped(means([0.5]), 1),
        lambda: capped_signs(means([0.5, 0.5]), made([0.5]), 1),
        lambda: capped_signs(made([0.5]), made([0.5]), 1),
        lambda: conditional_means(means([0.5, 0.5]), made([0.5])),
    ):
        with pytest.raises(InvalidValue):
            call()


def test_noisy_estimates_come_nearer():
    # d = 64, 2,000 people with 4 entries: the noise is many times the truth, and the projection takes most of it away.
    mechanism, rng = hb.ExSub(epsilon=0.5, dimension=64, sparsity=4), hb.Random(seed=1)
    rows = np.zeros((2_000, 64), dtype=np.int8)
    rows[:, :3], rows[:, 3] = 1, -1
    sketch = mechanism.accumulate(mechanism.randomize(rows, rng))
    mean, share = mechanism.estimate(sketch), mechanism.estimate(sketch, of="frequency")
    near, close = capped_signs(mean, share, 4, exactly=True)
    truth = rows.mean(axis=0)
    assert np.abs(near.value - truth).sum() < 0.5 * np.abs(mean.value - truth).sum()
    assert np.abs(close.value - np.abs(truth)).sum() < 0.5 * np.abs(share.value - np.abs(truth)).sum()
    assert np.abs(clip_means(mean).value - truth).sum() <= np.abs(mean.value - truth).sum()
