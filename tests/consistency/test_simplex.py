"""Projections onto the simplex; and hierarchies, whose consistent leaves are a projection too."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hubbub.consistency import project_capped_simplex, project_simplex
from hubbub.consistency.normalise import consistent_leaves
from hubbub.core.errors import InvalidValue

numbers = st.floats(-5, 5, allow_nan=False)
vectors = st.integers(1, 40).flatmap(lambda d: arrays(np.float64, d, elements=numbers))
small = st.integers(1, 5).flatmap(lambda d: arrays(np.float64, d, elements=numbers))


def nearest_by_enumeration(x, total, cap):
    """Try every way of putting each number at 0, at the cap or between; the nearest feasible point is the answer."""
    best, distance = None, math.inf
    for places in itertools.product((0, 1, 2), repeat=x.size):
        at = np.array(places)
        free = at == 1
        y = np.where(at == 2, cap, 0.0)
        left = total - y[at == 2].sum()
        if free.any():
            y[free] = x[free] - (x[free].sum() - left) / free.sum()
        elif abs(left) > 1e-9:
            continue
        if (y >= -1e-9).all() and (y <= cap + 1e-9).all() and math.dist(x, y) < distance:
            best, distance = y, math.dist(x, y)
    return best


@given(vectors, st.floats(0, 10))
def test_lies_on_the_simplex(x, total):
    y = project_simplex(x, total)
    assert (y >= 0).all()
    assert y.sum() == pytest.approx(total, abs=1e-12)


@given(vectors, st.floats(0.01, 10))
def test_no_point_of_the_simplex_is_nearer(x, total):
    # y is the projection exactly when (x - y).(z - y) <= 0 for every z; on a simplex its corners suffice.
    y = project_simplex(x, total)
    slopes = (total * np.eye(x.size) - y) @ (x - y)
    assert slopes.max() <= 1e-9


@given(small, st.floats(0.1, 3))
def test_agrees_with_enumeration(x, total):
    np.testing.assert_allclose(project_simplex(x, total), nearest_by_enumeration(x, total, np.inf), atol=1e-9)


@given(small, st.floats(0, 1), st.floats(0.05, 2))
def test_capped_agrees_with_enumeration(x, part, cap):
    total = part * cap * x.size
    expected = nearest_by_enumeration(x, total, cap)
    np.testing.assert_allclose(project_capped_simplex(x, total, cap), expected, atol=1e-6)  # of ties, either


@given(vectors, st.floats(0, 1))
def test_capped_obeys_its_bounds(x, part):
    y = project_capped_simplex(x, part * x.size)
    assert (y >= 0).all()
    assert (y <= 1).all()
    assert y.sum() == pytest.approx(part * x.size, abs=1e-9)


@given(vectors)
def test_projecting_twice_changes_nothing(x):
    once = project_simplex(x)
    np.testing.assert_allclose(project_simplex(once), once, atol=1e-14)
    capped = project_capped_simplex(x, 0.4 * x.size)
    np.testing.assert_allclose(project_capped_simplex(capped, 0.4 * x.size), capped, atol=1e-12)


@given(vectors)
def test_a_cap_that_does_not_bind_changes_nothing(x):
    np.testing.assert_allclose(project_capped_simplex(x, 1.0, cap=2.0), project_simplex(x), atol=1e-12)


def test_a_cap_that_binds():
    assert project_capped_simplex([5.0, 0.0, 0.0], 2.0).tolist() == [1.0, 0.5, 0.5]


@pytest.mark.parametrize("shift", [1e12, -1e12])
def test_only_differences_matter(shift):
    # The shifted values are exact in floats (spaced 2^-13 there), so any loss would be the algorithm's own.
    x = np.array([0.5, 0.25, 0.0]) + shift
    np.testing.assert_allclose(project_simplex(x), project_simplex([0.5, 0.25, 0.0]), atol=1e-15)


def test_extreme_numbers():
    assert project_simplex([1e308, -1e308, 0.0]).tolist() == [1.0, 0.0, 0.0]
    assert project_simplex([-3.0, -3.0]).tolist() == [0.5, 0.5]
    assert project_simplex([7.0]).tolist() == [1.0]
    assert project_simplex([2.0, -1.0], total=0.0).tolist() == [0.0, 0.0]
    assert project_capped_simplex([0.3, -0.7], total=0.0).tolist() == [0.0, 0.0]
    assert project_capped_simplex([0.3, -0.7], total=2.0).tolist() == [1.0, 1.0]


def test_the_input_is_left_alone():
    x = np.array([0.75, 0.5, -0.25])
    project_simplex(x)
    project_capped_simplex(x, 1.0)
    assert x.tolist() == [0.75, 0.5, -0.25]


BAD = [
    *[("x: got", x, 1.0) for x in ([np.nan, 1.0], [np.inf], [], [[0.5, 0.5]])],
    *[("total: got", [0.5, 0.5], total) for total in (-0.1, np.nan, np.inf)],
]


@pytest.mark.parametrize(("refusal", "x", "total"), BAD)
def test_what_cannot_be_projected_is_refused(refusal, x, total):
    for projection in (project_simplex, project_capped_simplex):
        with pytest.raises(InvalidValue, match=refusal):
            projection(x, total)


BAD_CAPS = [
    *[("cap: got", [0.5], 0.1, cap) for cap in (0.0, -1.0, np.nan, np.inf)],
    ("from 0 to 2.0", [0.5, 0.5], 2.1, 1.0),  # more than all caps
    ("floats can tell", [1e17, 1e17], 1.0, 1.0),  # too small for floats
]


@pytest.mark.parametrize(("refusal", "x", "total", "cap"), BAD_CAPS)
def test_caps_that_cannot_be_kept_are_refused(refusal, x, total, cap):
    with pytest.raises(InvalidValue, match=refusal):
        project_capped_simplex(x, total, cap)


def test_a_consistent_hierarchy_is_the_weighted_least_squares_solution() -> None:
    rng = np.random.default_rng(1)
    fanout, variances = 3, [0.5, 2.0, 1.0]
    levels = [rng.normal(size=fanout ** (h + 1)) for h in range(3)]
    leaves = fanout**3
    rows, wanted, weights = [np.ones((1, leaves))], [np.ones(1)], [1e9]  # the sum is known
    for level, variance in zip(levels, variances, strict=True):
        rows.append(np.repeat(np.eye(len(level)), leaves // len(level), axis=1))
        wanted.append(level)
        weights += [1 / variance] * len(level)
    root = np.sqrt(np.array(weights))
    solved, *_ = np.linalg.lstsq(np.vstack(rows) * root[:, None], np.concatenate(wanted) * root, rcond=None)
    assert consistent_leaves(levels, variances, fanout=fanout) == pytest.approx(solved, abs=1e-6)


def test_levels_of_other_sizes_are_refused() -> None:
    with pytest.raises(InvalidValue):
        consistent_leaves([np.zeros(2), np.zeros(3)], [1.0, 1.0], fanout=2)
