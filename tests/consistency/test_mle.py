import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import LinearConstraint, minimize

from hubbub.consistency import mle_apx, norm_sub
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from tests.consistency.estimates import ORACLES, made

values = st.integers(2, 12).flatmap(lambda d: arrays(np.float64, d, elements=st.floats(-0.3, 1.2)))
slopes = st.floats(-0.8, 3.0)  # in units of the floor: from p + q > 1 to a large epsilon


def relative(value, slope, floor=0.01):
    return made(value, slope * floor, floor)


def unlikely(f, value, slope):
    return ((f - value) ** 2 / (1 + slope * f)).sum()


@given(values, slopes)
def test_no_other_shares_are_more_likely(value, slope):
    # The objective is convex: at its minimum the derivative is the same for all shares above 0, and no smaller at 0.
    f = mle_apx(relative(value, slope)).value
    assert f.sum() == pytest.approx(1.0, abs=1e-12)
    x = (f - value) / (1 + slope * f)
    derivative = 2 * x - slope * x**2
    positive = f > 1e-9
    assert np.ptp(derivative[positive]) < 1e-6
    assert (derivative[~positive] >= derivative[positive].max() - 1e-6).all()


@pytest.mark.parametrize("slope", [-0.7, 0.0, 0.3, 2.5])
def test_agrees_with_a_numerical_optimiser(slope):
    rng = np.random.default_rng(5)
    value = rng.dirichlet([0.5] * 6) + rng.normal(0, 0.15, 6)
    f = mle_apx(relative(value, slope)).value
    optimum = minimize(
        unlikely,
        np.full(6, 1 / 6),
        (value, slope),
        method="SLSQP",
        bounds=[(0, 1)] * 6,
        constraints=LinearConstraint(np.ones((1, 6)), 1, 1),
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(f, optimum.x, atol=1e-5)
    assert unlikely(f, value, slope) <= optimum.fun + 1e-10
    if slope:
        assert (
            np.abs(norm_sub(relative(value, slope)).value - optimum.x).max() > 1e-3
        )  # the projection is not the minimum


def test_eq_8_6_in_the_dissertations_terms():
    # p and q of an oracle instead of floor and slope, on estimates of which none is cut.
    p, q, n = 0.5, 0.2, 1000
    gap, value = p - q, np.array([0.6, 0.3, 0.15])
    estimate = Estimate(value, [0.01] * 3, n, noise=Noise(q * (1 - q) / (n * gap**2), (1 - p - q) / (n * gap)))
    f = mle_apx(estimate).value
    x = (f - value) * gap / (q * (1 - q) + f * gap * (1 - p - q))
    assert np.ptp(x) < 1e-12  # it does not depend on the value
    below = gap - gap * (1 - p - q) * x[0]
    np.testing.assert_allclose(f, (gap * value + q * (1 - q) * x[0]) / below)
    # As printed, x has a minus where the sum gives a plus, and gamma and delta the reverse.
    printed = (value.sum() * gap - gap) / (gap * (1 - p - q) - 3 * q * (1 - q))
    assert abs(printed - x[0]) > 0.01
    for over in (gap - gap * (1 - p - q) * printed, gap + gap * (1 - p - q) * x[0]):
        assert abs(((gap * value + q * (1 - q) * x[0]) / over).sum() - 1) > 1e-3


@given(values)
def test_without_a_slope_it_is_norm_sub(value):
    np.testing.assert_allclose(mle_apx(relative(value, 0.0)).value, norm_sub(relative(value, 0.0)).value, atol=1e-12)


def test_the_scale_of_the_noise_does_not_matter():
    value = [0.7, 0.5, 0.1, -0.2]
    np.testing.assert_allclose(mle_apx(relative(value, 1.5, 1e-12)).value, mle_apx(relative(value, 1.5, 10.0)).value)


@pytest.mark.parametrize(("value", "slope"), [([-3.0, -2.0, -9.0], 1.0), ([1.6, 1.5, 0.1], -0.7), ([-1.0, 0.5], 1.0)])
def test_where_the_variance_has_no_meaning_the_slope_is_left_out(value, slope):
    estimate = relative(value, slope)
    assert mle_apx(estimate).value.tolist() == norm_sub(estimate).value.tolist()


def test_one_value_left_with_no_variance_at_one():
    assert mle_apx(relative([1.0, -0.5], -1.0 + 1e-12)).value.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("kind", ORACLES, ids=lambda kind: kind.__name__)
def test_no_oracle_reaches_there(kind):
    # The least and the largest estimate of each oracle, from the ends of what a report can support.
    for oracle in kind.examples():
        moments, noise = oracle.moments(), oracle.noise(100)
        for support in oracle.support_range:
            share = (support - moments.false_mean) / (moments.true_mean - moments.false_mean)
            assert noise.floor + noise.slope * share > 0
