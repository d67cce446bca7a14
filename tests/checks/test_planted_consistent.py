"""Bugs planted in an estimator that is consistent and not unbiased: the contract suite finds each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from hubbub import SquareWave
from hubbub.checks import CheckFailed, checks_for
from hubbub.checks.heuristic import check_consistent
from hubbub.statistics.influence import Influence


@dataclass(frozen=True, kw_only=True)
class SmoothsForever(SquareWave):
    """Smooths as much with ten billion reports as with a few: the published quarter, on a coarse grid."""

    def smoothing(self, n: int) -> float:
        return 0.25


@dataclass(frozen=True, kw_only=True)
class ForgetsToNormalise(SquareWave):
    def distribution(self, sketch, *, smooth=True):
        distribution = super().distribution(sketch, smooth=smooth)
        return replace(distribution, value=distribution.value * 1.01)


@dataclass(frozen=True, kw_only=True)
class TooSure(SquareWave):
    """States half of the standard errors."""

    def distribution(self, sketch, *, smooth=True):
        distribution = super().distribution(sketch, smooth=smooth)
        return replace(distribution, covariance=distribution.covariance / 4)


@dataclass(frozen=True, kw_only=True)
class MiddleOfTheCell(SquareWave):
    """Takes every point for the middle of the cell above it: the mean is half a cell too large."""

    def distribution(self, sketch, *, smooth=True):
        distribution = super().distribution(sketch, smooth=smooth)
        return replace(distribution, points=distribution.points + (self.high - self.low) / self.cells / 2)


@dataclass(frozen=True, kw_only=True)
class ForgedIsLikeAny(SquareWave):
    """States that a forged report counts for one person."""

    def influence(self):
        return Influence(Fraction(self.low), Fraction(self.high), Fraction(self.low), Fraction(self.high))


@dataclass(frozen=True, kw_only=True)
class SharesAreBlurred(SquareWave):
    """States of any share what is true of one that is blurred over half of the range."""

    def share_influence(self, low, high, *, blur=0.0):
        return super().share_influence(low, high, blur=5.0)


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        (SmoothsForever, "any number of reports"),
        (ForgetsToNormalise, "sum to 1"),
        (TooSure, "hold the truth"),
        (MiddleOfTheCell, "biased"),
        (ForgedIsLikeAny, "forged reports move the mean"),
        (SharesAreBlurred, "forged reports move the share"),
    ],
)
def test_a_planted_bug_is_found(planted: type[SquareWave], found: str):
    with pytest.raises(CheckFailed, match=found):
        check_consistent(planted(epsilon=1.0, low=0.0, high=10.0, cells=15))


def test_it_is_for_estimates_that_say_so():
    assert check_consistent in checks_for(SquareWave(epsilon=1.0, cells=7))
    assert not np.any([check.__name__ == "check_unbiased" for check in checks_for(SquareWave(epsilon=1.0, cells=7))])
