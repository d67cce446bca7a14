"""What consistent estimates promise of their errors: intervals that hold, and projections that never err more in all.

Ten crowds, on which nothing was chosen. What holds whatever the reports is tested of every run, without any chance.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from hubbub.consistency import METHODS, base_cut, norm, norm_sub
from hubbub.consistency.guide import consistent_rows, guideline, method_named
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats
from hubbub.statistics.ratios import Ratios
from tests.consistency.estimates import SIZE, WEIGHTS, estimates_of, made

crowds = cache(estimates_of)
every_crowd = pytest.mark.parametrize("crowd", WEIGHTS)
PROJECTIONS = ("base-pos", "norm", "norm-sub")
"""Each gives the nearest point of a convex set that holds the truth."""


def squares(crowd: str, name: str) -> Floats:
    """Of each run (row) and value, the squared error."""
    estimates, truth = crowds(crowd)
    return np.array([(method_named(name).apply(estimate).value - truth) ** 2 for estimate in estimates])


@every_crowd
@pytest.mark.parametrize("name", PROJECTIONS)
def test_projections_never_err_more_in_all(crowd: str, name: str) -> None:
    before, after = squares(crowd, "base").sum(axis=1), squares(crowd, name).sum(axis=1)
    assert (after <= before * (1 + 1e-12)).all()
    most = {"base-pos": 0.7, "norm": 1.0, "norm-sub": 0.5}[name]  # of all runs together
    assert after.sum() <= most * before.sum()


def test_what_is_no_projection_can_err_more_in_all() -> None:
    assert squares("one value", "norm-mul").sum() > 2 * squares("one value", "base").sum()


def test_single_values_err_more_which_are_common_where_most_are_rare() -> None:
    """Base-Pos never moves a value away from the truth. Norm-Sub takes from the common what it gives to the rare."""
    for crowd in WEIGHTS:
        assert (squares(crowd, "base-pos") <= squares(crowd, "base") * (1 + 1e-12)).all()
    worse = {
        crowd: np.flatnonzero(squares(crowd, "norm-sub").mean(axis=0) > squares(crowd, "base").mean(axis=0))
        for crowd in ("one value", "geometric", "power law")
    }
    assert worse["one value"].tolist() == [20]
    for crowd in ("geometric", "power law"):
        truth = crowds(crowd)[1]
        assert len(worse[crowd]) >= 3
        assert set(worse[crowd]) <= set(np.argsort(-truth)[:12])


@every_crowd
@pytest.mark.parametrize("name", [*(name for name in METHODS if name != "norm"), "base-cut:5"])
def test_intervals_hold_those_of_the_raw_estimates_of_values_and_of_sums(crowd: str, name: str) -> None:
    """So they cover the truth whenever the raw ones do."""
    rows = np.vstack([np.eye(SIZE)[:3], np.arange(SIZE) < 20, np.ones(SIZE)])
    for raw in crowds(crowd)[0][:5]:
        after = METHODS[name].apply(raw) if name in METHODS else method_named(name).apply(raw)
        for before, told in ((raw, after), (raw.linear(rows), after.linear(rows))):
            (low, high), (told_low, told_high) = before.interval(), told.interval()
            assert (told_low <= np.minimum(low, told.value)).all()
            assert (told_high >= np.maximum(high, told.value)).all()
            np.testing.assert_allclose(told.variance, before.variance)


def test_intervals_around_the_consistent_value_would_not_hold() -> None:
    """Norm-Mul takes a large part of the only value; an interval of the raw width around the result misses it."""
    estimates, truth = crowds("one value")

    def held(around: bool) -> int:
        after = [METHODS["norm-mul"].apply(estimate) for estimate in estimates]
        ends = [(replace(each, centre=None) if around else each).interval() for each in after]
        return sum(bool(low[20] <= truth[20] <= high[20]) for low, high in ends)

    assert held(around=True) == 0
    assert held(around=False) >= 15  # of 20: fewer with probability 3e-4, for this seed not


def test_norm_moves_the_centre_of_a_smoothed_estimate_too() -> None:
    """Its intervals are those of the unbiased estimate after Norm, whatever the smoothed values are."""
    raw = made([0.6, 0.3, 0.2])
    smoothed = norm(replace(raw, value=np.array([0.5, 0.2, 0.1]), centre=raw.value))
    plain = norm(raw)
    np.testing.assert_allclose(smoothed.value.sum(), 1.0)
    np.testing.assert_allclose(smoothed.variance, plain.variance)
    low, high = smoothed.interval()
    assert (low <= plain.interval()[0] + 1e-15).all()
    assert (high >= plain.interval()[1] - 1e-15).all()


# -- Base-Cut at the k-th highest -----------------------------------------------------------------------------------


def test_base_cut_at_the_kth_highest_keeps_k_values_and_needs_no_noise() -> None:
    estimate = Estimate([0.4, 0.05, 0.3, -0.1, 0.3], [0.01] * 5, 100)
    assert base_cut(estimate, k=1).value.tolist() == [0.4, 0.0, 0.0, 0.0, 0.0]
    assert base_cut(estimate, k=2).value.tolist() == [0.4, 0.0, 0.3, 0.0, 0.3]  # equal ones are kept together
    assert base_cut(estimate, k=9).value.tolist() == [0.4, 0.05, 0.3, 0.0, 0.3]  # never below 0
    assert method_named("base-cut:2").apply(estimate).value.tolist() == base_cut(estimate, k=2).value.tolist()
    assert not method_named("base-cut:2").needs_noise
    with pytest.raises(InvalidValue, match="k: got 0"):
        base_cut(estimate, k=0)
    for name in ("base-cut:", "base-cut:0", "base-cut:x", "base-cut:-1", "norm:2", "base-cut:9999999999"):
        with pytest.raises(InvalidValue, match="base-cut:K keeps the K highest"):
            method_named(name)


def test_the_most_common_values_are_better_off_where_k_is_known() -> None:
    """Section 8.2.5: with a lower threshold than chance asks for, the error of the highest values falls."""
    truth = crowds("power law")[1]
    top = np.argsort(-truth)[:8]
    assert squares("power law", "base-cut:8")[:, top].sum() < 0.95 * squares("power law", "base-cut")[:, top].sum()


# -- the rows of a release ------------------------------------------------------------------------------------------


def test_each_group_is_made_consistent_alone_and_an_unknown_one_stays_unknown() -> None:
    value = [0.75, 0.5, -0.25, np.nan, np.nan, np.nan, 0.2, 0.2, 0.2]
    raw = Estimate(value, [0.01] * 9, 100, bias="ratio")
    told = consistent_rows(raw, METHODS["norm-sub"], 3)
    assert told.value[:3].tolist() == norm_sub(Estimate(value[:3], [0.01] * 3, 100)).value.tolist()
    assert np.isnan(told.value[3:6]).all()
    np.testing.assert_allclose(told.value[6:], 1 / 3)
    assert told.bias == "consistent"


def test_intervals_of_ratios_are_extended_too() -> None:
    moments = np.repeat([[1e-6], [0.0], [1e-6]], 2, axis=1)
    raw = Ratios.of(np.array([0.3, 0.2]), np.array([0.5, 0.5]), moments, 100, bounds=(0.0, 1.0))
    told = consistent_rows(raw, method_named("base-cut:1"), 2)
    (low, high), (told_low, told_high) = raw.interval(), told.interval()
    assert low[1] > 0.3
    assert (told_low[1], told_high[1]) == (0.0, high[1])
    assert (told_low[0], told_high[0]) == (low[0], high[0])


def test_the_guideline_falls_back_on_projections() -> None:
    for purpose in ("single", "frequent", "set"):
        assert guideline(purpose, noise=False) in ("norm", "norm-sub")
        for noise in (True, False):
            name = guideline(purpose, whole=False, noise=noise)
            assert METHODS[name].sums_to_one == "no"
            assert noise or not METHODS[name].needs_noise
