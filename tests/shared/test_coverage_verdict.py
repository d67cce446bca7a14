"""The verdict on a coverage refuses what is too low or too high, and little else."""

from __future__ import annotations

from tests.shared.coverage import refused_coverage


def test_a_low_coverage_is_refused_and_a_good_one_is_not() -> None:
    assert refused_coverage(950, 1000) == ""
    assert refused_coverage(910, 1000) == ""
    assert "below 0.93" in refused_coverage(890, 1000)


def test_a_high_coverage_is_refused_where_a_bound_is_given() -> None:
    assert refused_coverage(1000, 1000) == ""
    assert "above 0.97" in refused_coverage(1000, 1000, most=0.97)
    assert refused_coverage(960, 1000, most=0.97) == ""
