"""Mechanisms with a planted bug on the server: they count or estimate wrongly, or state a wrong error."""

from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub import FLH, GRR, Ordinal, Piecewise, PrivSet, Rappor, Sets, SquareWave
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Sketch
from hubbub.statistics.influence import Influence
from tests.checks.planted import found_by

SMALL: dict[str, Any] = {"epsilon": 1.0, "domain": 5}
WAVE: dict[str, Any] = {"epsilon": 1.0, "low": 0.0, "high": 10.0, "cells": 15}


class _DropsN(Sketch):
    def __add__(self, other):
        merged = super().__add__(other)
        return _DropsN(self.spec_id, max(self.n, other.n), merged.counts)


@found_by("check_merge_laws", **SMALL)
class MergeDropsN(GRR):
    """Merging keeps the counts and loses how many there were."""

    def accumulate(self, reports):
        sketch = super().accumulate(reports)
        return _DropsN(sketch.spec_id, sketch.n, sketch.counts)


@found_by("check_foreign", "check_hostile_columns", **SMALL)
class TakesAnyReport(GRR):
    """Accumulates without looking."""

    def check(self, reports):
        pass

    def _fold(self, reports):
        return np.bincount(np.ravel(next(iter(reports.private.values()))) % self.size, minlength=self.size)


@found_by("check_round_trip", **SMALL)
class WrongReportBytes(GRR):
    """States another size of a report than it has."""

    report_bytes = 9


@found_by("check_empty", **SMALL)
class EstimatesFromNothing(GRR):
    """Answers 0 where there are no reports."""

    def estimate(self, sketch, candidates=None):
        return super().estimate(sketch if sketch.n else Sketch(sketch.spec_id, 1, sketch.counts), candidates)


@found_by("check_unbiased", "check_influence", **SMALL)
class WrongConstant(GRR):
    """The server's q is 5% off: client and server each derive their own."""

    def moments(self):
        return super().moments()._replace(false_mean=super().moments().false_mean * 1.05)


@found_by("check_unbiased", "check_influence", **SMALL)
@found_by("check_unbiased", epsilon=0.5, domain=300)
class ClipsNegatives(GRR):
    """Post-processing welded into the estimator."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        return replace(estimate, value=np.maximum(estimate.value, 0.0))


@found_by("check_variance", "check_coverage", **SMALL)
class TooSure(GRR):
    """Variances 30% too small."""

    def moments(self):
        right = super().moments()
        return right._replace(true_variance=right.true_variance * 0.7, false_variance=right.false_variance * 0.7)


@found_by("check_bias_declared", **SMALL)
class UndeclaredHeuristic(GRR):
    """A heuristic whose estimates claim to be unbiased."""

    bias = "heuristic"

    def _estimate(self, sketch, candidates=None):
        return replace(super()._estimate(sketch, candidates), bias="none")


@found_by("check_heuristic_error", epsilon=1.0, domain=5, functions=64)
class ForgetsCollisions(FLH):
    """Declares OLH's variance, as if there were a hash function for every report."""

    confusion = 0.0


@found_by("check_heuristic_error", **SMALL)
class Diffident(FLH):
    """Declares an error ten times as large as it is."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        return replace(estimate, variance=100 * estimate.variance)


@found_by("check_heuristic_error", epsilon=2.0, domain=5, bits=8, cohorts=4)
class OverconfidentRegression(Rappor):
    """Declares an error a fifth as large as it is."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        return replace(estimate, variance=estimate.variance / 25)


@found_by("check_linear", **SMALL)
class ForgetsItsCovariance(GRR):
    """Takes the supports of one report as independent, though it supports one value alone."""

    def pair_covariance(self):
        return 0.0, 0.0


@found_by("check_support", **SMALL)
class IgnoresWeights(GRR):
    """Counts every report once."""

    def _support(self, reports, candidates, weights):
        return super()._support(reports, candidates, None)


@found_by("check_weights", **SMALL)
class ForgetsSquares(GRR):
    """States the error of weighted totals as if all weights were their mean."""

    def _weighted(self, sketch, labels):
        estimate = super()._weighted(sketch, labels)
        total, squares = sketch.counts[:, -1]
        return replace(estimate, variance=estimate.variance * total**2 / squares / sketch.n)


@found_by("check_support", "check_weights", epsilon=1.0, domain=Sets(Ordinal(6), most=2))
class IgnoresWeightsOfSets(PrivSet):
    """Counts every report once."""

    def _support(self, reports, candidates, weights):
        return super()._support(reports, candidates, None)


@found_by("check_support", **SMALL)
class SureOfCandidates(GRR):
    """States a smaller error for candidates than for the same values in a whole histogram."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        return replace(estimate, variance=estimate.variance / (1 if candidates is None else 4))


@found_by("check_weights", epsilon=2.0, domain=8, functions=16)
class SureOfTotals(FLH):
    """States the error of weighted totals as if there were a hash function for every report."""

    def _confused(self, estimate, total):
        return estimate if estimate.kind == "quantity" else super()._confused(estimate, total)


class _OfEveryone(Estimate):
    def of_population(self, size):
        return self


@found_by("check_of_population", **SMALL)
class TakesACohortForEveryone(GRR):
    """Its estimates add nothing for sampling; the noise of a small epsilon hides it."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        return _OfEveryone(**{part.name: getattr(estimate, part.name) for part in fields(estimate) if part.init})


@found_by("check_of_population", epsilon=8.0, low=0.0, high=1.0)
class CertainOfEveryone(Piecewise):
    """Says nothing of how values differ among people, as if a cohort were the population."""

    def _estimate(self, sketch, candidates=None):
        return replace(super()._estimate(sketch, candidates), spread=0.0)


@found_by("check_influence", **SMALL)
class LiesOnlyUpward(GRR):
    """Says that forged reports can add to a share, and never take from it."""

    def influence(self, values=1):
        return super().influence(values)._replace(least=Fraction(0))


@found_by("check_influence", **SMALL)
class OverstatesForgeries(GRR):
    """Says that a forged report can do more than any can."""

    def influence(self, values=1):
        return super().influence(values)._replace(most=2 * super().influence(values).most)


@found_by("check_influence", **SMALL)
class WinsorisedMean(GRR):
    """The largest share is cut: no mean over reports any more, but single reports do not show it."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        cut = np.minimum(estimate.value, 0.3) if sketch.n > 1 else estimate.value
        return replace(estimate, value=cut)


@found_by("check_consistent", says="any number of reports", **WAVE)
class SmoothsForever(SquareWave):
    """Smooths as much with ten billion reports as with a few: the published quarter, on a coarse grid."""

    def smoothing(self, n: int) -> float:
        return 0.25


@found_by("check_consistent", says="sum to 1", **WAVE)
class ForgetsToNormalise(SquareWave):
    def distribution(self, sketch, *, smooth=True):
        distribution = super().distribution(sketch, smooth=smooth)
        return replace(distribution, value=distribution.value * 1.01)


@found_by("check_consistent", says="hold the truth", **WAVE)
class TooSureOfDistributions(SquareWave):
    """States half of the standard errors."""

    def distribution(self, sketch, *, smooth=True):
        distribution = super().distribution(sketch, smooth=smooth)
        return replace(distribution, covariance=distribution.covariance / 4)


@found_by("check_consistent", says="biased", **WAVE)
class MiddleOfTheCell(SquareWave):
    """Takes every point for the middle of the cell above it: the mean is half a cell too large."""

    def distribution(self, sketch, *, smooth=True):
        distribution = super().distribution(sketch, smooth=smooth)
        return replace(distribution, points=distribution.points + (self.high - self.low) / self.cells / 2)


@found_by("check_consistent", says="forged reports move the mean", **WAVE)
class ForgedIsLikeAny(SquareWave):
    """States that a forged report counts for one person."""

    def influence(self):
        return Influence(Fraction(self.low), Fraction(self.high), Fraction(self.low), Fraction(self.high))


@found_by("check_consistent", says="forged reports move the share", **WAVE)
class SharesAreBlurred(SquareWave):
    """States of any share what is true of one that is blurred over half of the range."""

    def share_influence(self, low, high, *, blur=0.0):
        return super().share_influence(low, high, blur=5.0)
