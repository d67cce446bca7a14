"""Whether answers over boxes err as they say, for every way of asking for ranges."""

from collections.abc import Sequence

import numpy as np
import pytest

from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats
from hubbub.protocols.ranges import cell_sums
from tests.shared.answers import holds

FEW, MANY = 120, 10_000
"""Numbers of runs: the bounds of few are some four deviations each, passed by chance once in 10^4. Of many the mean
square is off by 1.4% (a deviation), and by 5% in one of 2,500 cases by chance."""


def scored(answers: Sequence[Estimate], truth: float) -> tuple[Floats, float]:
    """The errors of answers in units of their mean standard error, and how often the interval held the truth."""
    difference = np.array([answer.value[0] for answer in answers]) - truth
    error = np.sqrt(np.mean([answer.variance[0] for answer in answers]))
    return difference / error, float(np.mean([holds(answer, truth) for answer in answers]))


def assert_as_stated(errors: Floats) -> None:
    """Of few or of many runs."""
    assert abs(errors.mean()) < 4 / np.sqrt(errors.size)
    assert np.mean(errors**2) == pytest.approx(1.0, abs=0.55 if errors.size == FEW else 0.05)


def plant_a_forgotten_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: groups that are not scaled up to the population."""
    real = cell_sums.report_variance
    quarter = "hubbub.protocols.ranges.cell_sums.report_variance"
    monkeypatch.setattr(quarter, lambda oracle, weights: tuple(part / 4 for part in real(oracle, weights)))
