"""The verdict on a coverage refuses what is too low or too high, and little else."""

from tests.shared.coverage import refused_coverage


def test_a_coverage_that_is_too_low_or_too_high_is_refused_and_a_good_one_is_not() -> None:
    assert refused_coverage(950, 1000) == refused_coverage(910, 1000) == refused_coverage(1000, 1000) == ""
    assert "below 0.93" in refused_coverage(890, 1000)
    assert "above 0.97" in refused_coverage(1000, 1000, most=0.97)
    assert refused_coverage(960, 1000, most=0.97) == ""
