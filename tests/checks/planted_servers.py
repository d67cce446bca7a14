"""Mechanisms with a planted bug on the server: they count or estimate wrongly, or state a wrong error."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction

import numpy as np

from hubbub import FLH, GRR, Piecewise, PrivSet, Rappor
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Sketch


class _DropsN(Sketch):
    def __add__(self, other):
        merged = super().__add__(other)
        return _DropsN(self.spec_id, max(self.n, other.n), merged.counts)


class MergeDropsN(GRR):
    """Merging keeps the counts and loses how many there were."""

    def accumulate(self, reports):
        sketch = super().accumulate(reports)
        return _DropsN(sketch.spec_id, sketch.n, sketch.counts)


class TakesAnyReport(GRR):
    """Accumulates without looking."""

    def check(self, reports):
        pass

    def _fold(self, reports):
        return np.bincount(np.ravel(next(iter(reports.private.values()))) % self.size, minlength=self.size)


class WrongReportBytes(GRR):
    """States another size of a report than it has."""

    report_bytes = 9


class EstimatesFromNothing(GRR):
    """Answers 0 where there are no reports."""

    def estimate(self, sketch, candidates=None):
        return super().estimate(sketch if sketch.n else Sketch(sketch.spec_id, 1, sketch.counts), candidates)


class WrongConstant(GRR):
    """The server's q is 5% off: client and server each derive their own."""

    def moments(self):
        return super().moments()._replace(false_mean=super().moments().false_mean * 1.05)


class ClipsNegatives(GRR):
    """Post-processing welded into the estimator."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        return replace(estimate, value=np.maximum(estimate.value, 0.0))


class TooSure(GRR):
    """Variances 30% too small."""

    def moments(self):
        right = super().moments()
        return right._replace(true_variance=right.true_variance * 0.7, false_variance=right.false_variance * 0.7)


class UndeclaredHeuristic(GRR):
    """A heuristic whose estimates claim to be unbiased."""

    bias = "heuristic"

    def _estimate(self, sketch, candidates=None):
        return replace(super()._estimate(sketch, candidates), bias="none")


class ForgetsCollisions(FLH):
    """Declares OLH's variance, as if there were a hash function for every report."""

    confusion = 0.0


class Diffident(FLH):
    """Declares an error ten times as large as it is."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        return replace(estimate, variance=100 * estimate.variance)


class OverconfidentRegression(Rappor):
    """Declares an error a fifth as large as it is."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        return replace(estimate, variance=estimate.variance / 25)


class ForgetsItsCovariance(GRR):
    """Takes the supports of one report as independent, though it supports one value alone."""

    def pair_covariance(self):
        return 0.0, 0.0


class IgnoresWeights(GRR):
    """Counts every report once."""

    def _support(self, reports, candidates, weights):
        return super()._support(reports, candidates, None)


class ForgetsSquares(GRR):
    """States the error of weighted totals as if all weights were their mean."""

    def _weighted(self, sketch, labels):
        estimate = super()._weighted(sketch, labels)
        total, squares = sketch.counts[:, -1]
        return replace(estimate, variance=estimate.variance * total**2 / squares / sketch.n)


class IgnoresWeightsOfSets(PrivSet):
    """Counts every report once."""

    def _support(self, reports, candidates, weights):
        return super()._support(reports, candidates, None)


class SureOfCandidates(GRR):
    """States a smaller error for candidates than for the same values in a whole histogram."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        return replace(estimate, variance=estimate.variance / (1 if candidates is None else 4))


class SureOfTotals(FLH):
    """States the error of weighted totals as if there were a hash function for every report."""

    def _confused(self, estimate, total):
        return estimate if estimate.kind == "quantity" else super()._confused(estimate, total)


class _OfEveryone(Estimate):
    def of_population(self, size):
        return self


class TakesACohortForEveryone(GRR):
    """Its estimates add nothing for sampling; the noise of a small epsilon hides it."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        return _OfEveryone(**{part.name: getattr(estimate, part.name) for part in fields(estimate)})


class CertainOfEveryone(Piecewise):
    """Says nothing of how values differ among people, as if a cohort were the population."""

    def _estimate(self, sketch, candidates=None):
        return replace(super()._estimate(sketch, candidates), spread=0.0)


class LiesOnlyUpward(GRR):
    """Says that forged reports can add to a share, and never take from it."""

    def influence(self, values=1):
        return super().influence(values)._replace(least=Fraction(0))


class OverstatesForgeries(GRR):
    """Says that a forged report can do more than any can."""

    def influence(self, values=1):
        return super().influence(values)._replace(most=2 * super().influence(values).most)


class WinsorisedMean(GRR):
    """The largest share is cut: no mean over reports any more, but single reports do not show it."""

    def _estimate(self, sketch, candidates=None):
        estimate = super()._estimate(sketch, candidates)
        cut = np.minimum(estimate.value, 0.3) if sketch.n > 1 else estimate.value
        return replace(estimate, value=cut)
