"""The suite earns its keep here: every check catches at least one bug that was planted for it.

Statistical checks reject a right mechanism with probability 1e-6; the seeds are fixed, and each planted bug is so far
off that its own check misses it with a smaller probability than that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub import FLH, GRR, OLH, OUE, SHE, SUE, Ordinal, Piecewise, PrivSet, Random, Rappor, Sets
from hubbub.checks import CHECKS, CheckFailed, checks_for, run_checks
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import Event
from hubbub.core.exact import log_upper
from hubbub.core.hashing import bucket, hash32
from hubbub.core.reports import Reports
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import ColumnSpec, Mechanism
from hubbub.mechanisms.frequency.choice import TWO_64, choose
from hubbub.mechanisms.frequency.unary import flip_bits

# -- randomisers that draw from another distribution than they state ------------------------------------------------


class SwappedRates(GRR):
    """Says the truth as often as it should lie."""

    def _randomize(self, codes, rng):
        return {"value": 1 - super()._randomize(codes, rng)["value"]}


class SwappedBits(OUE):
    """Takes each bit's threshold for the other's."""

    def _randomize(self, codes, rng):
        return {"bits": flip_bits(codes[:, None], self.size, self.width, self.zero, self.one, rng)}


class MirroredBits(OUE):
    """Uses 1-q and 1-p for p and q: the same epsilon, another distribution."""

    def _randomize(self, codes, rng):
        top = 1 << self.width
        return {"bits": flip_bits(codes[:, None], self.size, self.width, top - self.zero, top - self.one, rng)}


class ModuloBias(GRR):
    """Picks a false answer by an 8-bit draw modulo the number of options."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        index = ((draws[:, 1] & np.uint64(0xFF)) % np.uint64(self.size - 1)).astype(np.int64)
        index += index >= codes
        keep = TWO_64 - (self.size - 1) * self.other
        return {"value": np.where(draws[:, 0] < np.uint64(keep), codes, index)}


class KeepsTooOften(GRR):
    """The truth comes 30% more often than stated."""

    def _randomize(self, codes, rng):
        keep = 13 * (TWO_64 - (self.size - 1) * self.other) // 10
        return {"value": choose(codes, rng.uint64(codes.size), (TWO_64 - keep) // (self.size - 1), self.size)}


class KeepsTooRarely(GRR):
    """The truth comes 30% less often than stated."""

    def _randomize(self, codes, rng):
        keep = 7 * (TWO_64 - (self.size - 1) * self.other) // 10
        return {"value": choose(codes, rng.uint64(codes.size), (TWO_64 - keep) // (self.size - 1), self.size)}


class LiftsTooOften(OUE):
    """Other values' bits are 1 30% more often than stated."""

    def _randomize(self, codes, rng):
        return {"bits": flip_bits(codes[:, None], self.size, self.width, self.one, 13 * self.zero // 10, rng)}


class HoldsTooRarely(OUE):
    """The sender's own bit is 1 30% less often than stated."""

    def _randomize(self, codes, rng):
        return {"bits": flip_bits(codes[:, None], self.size, self.width, 7 * self.one // 10, self.zero, rng)}


class HashesTooRarely(OLH):
    """The value's own bucket comes 30% less often than stated."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        truth = bucket(hash32(draws[:, 0], codes, self.hash), self.buckets)
        keep = 7 * (TWO_64 - (self.buckets - 1) * self.other) // 10
        other = (TWO_64 - keep) // (self.buckets - 1)
        return {"seed": draws[:, 0], "bucket": choose(truth, draws[:, 1], other, self.buckets)}


class NoisesTooLittle(SHE):
    """The noise has a scale 30% below the stated."""

    def _randomize(self, codes, rng):
        quiet = SHE(epsilon=self.epsilon / 0.7, domain=self.domain, grid=self.grid, clamp=self.clamp)
        return quiet._randomize(codes, rng)


class ReusedNoise(GRR):
    """One draw serves the whole batch."""

    def _randomize(self, codes, rng):
        return {"value": choose(codes, np.repeat(rng.uint64(1), codes.size), self.other, self.size)}


class ReusedSeed(OLH):
    """One hash function serves the whole batch."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        draws[:, 0] = draws[:1, 0]
        truth = bucket(hash32(draws[:, 0], codes, self.hash), self.buckets)
        return {"seed": draws[:, 0], "bucket": choose(truth, draws[:, 1], self.other, self.buckets)}


class DrawsMoreForSome(GRR):
    """One value costs more random bytes: its length of time can be seen."""

    def _randomize(self, codes, rng):
        columns = super()._randomize(codes, rng)
        rng.bytes(8 * int(np.sum(codes == self.size - 1)))
        return columns


class LeakyPublicPart(OLH):
    """The parity of the value shows in the seed."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        seeds = (draws[:, 0] & ~np.uint64(1)) | (codes.astype(np.uint64) & np.uint64(1))
        truth = bucket(hash32(seeds, codes, self.hash), self.buckets)
        return {"seed": seeds, "bucket": choose(truth, draws[:, 1], self.other, self.buckets)}


class VaryingLeak(LeakyPublicPart):
    """The same leak, in a mechanism whose reports draw blocks that vary."""

    fixed_block = False


class VaryingDraws(DrawsMoreForSome):
    """More bytes for one value, in a mechanism whose reports draw blocks that vary."""

    fixed_block = False


class VaryingReuse(ReusedNoise):
    """One draw for the whole batch, in a mechanism whose reports draw blocks that vary."""

    fixed_block = False


class DrawsBeforeLooking(GRR):
    """Draws, and then finds that the values are wrong."""

    def randomize(self, values, rng):
        if isinstance(rng, Random):
            rng.bytes(8)
        return super().randomize(values, rng)


@dataclass(frozen=True, kw_only=True)
class KeepsTheArray(GRR):
    """Writes its answers over the caller's own array."""

    @property
    def columns(self):
        return (ColumnSpec("private", "value", "i8", below=self.size),)

    def outputs(self, public=None):
        return Reports(self.spec_id, private={"value": np.arange(self.size)})

    def _randomize(self, codes, rng):
        codes[:] = super()._randomize(codes, rng)["value"]
        return {"value": codes}


# -- distributions that are not what they should be -----------------------------------------------------------------


class OneTooGreedy(GRR):
    """Uses an integer that is one smaller than the one its epsilon is computed from."""

    @property
    def rates(self):
        other = self.other - 1
        return Fraction(TWO_64 - (self.size - 1) * other, TWO_64), Fraction(other, TWO_64)

    def ratio(self):
        return Fraction(TWO_64 - (self.size - 1) * self.other, self.other)


class TooModest(GRR):
    """States a bound that no report reaches."""

    @property
    def rates(self):
        p, q = super().rates
        return p - (self.size - 1) * q / 1000, q + q / 1000

    def ratio(self):
        return super().ratio() * Fraction(1001, 1000)


class DoesNotAddUp(GRR):
    """Probabilities whose sum is not 1."""

    def prob(self, reports, values):
        return super().prob(reports, values) * Fraction(TWO_64 - 1, TWO_64)


class RoundedLogarithm(GRR):
    """A log_prob that is right to nine digits."""

    def log_prob(self, reports, values):
        return super().log_prob(reports, values) + 1e-9


class RoundsDown(GRR):
    """An effective epsilon that leaves the last digit out."""

    @property
    def effective_epsilon(self):
        return float(np.nextafter(log_upper(self.ratio()), 0))


class TrustsTheServer(GRR):
    """Takes the integers of a spec as they come."""

    def __post_init__(self):
        self._resolve()


class OneSidedRatio(SUE):
    """A ratio that is right only while p + q = 1, which a hostile spec need not respect."""

    def ratio(self):
        p, _ = self.rates
        return (p / (1 - p)) ** 2


# -- specs that can change, or do not say everything ----------------------------------------------------------------


class Mutable(GRR):
    """Fields that can be set."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class HoldsAList(GRR):
    """A field that can be changed from within."""

    tags: list[str] = field(default_factory=lambda: ["a"])


class Forgetful(GRR):
    """A spec that leaves out an integer, which the other side then chooses for itself."""

    def spec(self):
        return {**super().spec(), "other": 0}

    @classmethod
    def examples(cls):
        yield cls(epsilon=1.0, domain=3, other=TWO_64 // 4)


class Tolerant(GRR):
    """Ignores what it does not know."""

    @classmethod
    def from_spec(cls, spec):
        return super().from_spec({key: value for key, value in spec.items() if key != "surplus"})


class TakesAnyHash(OLH):
    """Reads the reports of a hash function that it does not know as its own."""

    def _one_of(self, field, names):
        pass


class Underspends(GRR):
    """Charges the ledger less than it spends."""

    def event(self):
        return Event.of(type(self).__name__, self.spec_id, self.effective_epsilon * 0.99)


# -- servers that count or estimate wrongly -------------------------------------------------------------------------


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


SMALL: dict[str, Any] = {"epsilon": 1.0, "domain": 5}
PLANTED = [
    (SwappedRates(epsilon=1.0, domain=2), "check_sampler"),
    (SwappedBits(epsilon=1.0, domain=5), "check_sampler"),
    (SwappedBits(epsilon=1.0, domain=131), "check_sampler"),
    (MirroredBits(epsilon=1.0, domain=131), "check_sampler"),
    (ModuloBias(epsilon=0.5, domain=101), "check_sampler"),
    (KeepsTooOften(**SMALL), "check_sampler"),
    (KeepsTooOften(epsilon=0.5, domain=300), "check_sampler"),
    (KeepsTooRarely(epsilon=1.0, domain=2), "check_sampler"),
    (KeepsTooRarely(epsilon=0.5, domain=300), "check_sampler"),
    (LiftsTooOften(**SMALL), "check_sampler"),
    (LiftsTooOften(epsilon=1.0, domain=131), "check_sampler"),
    (HoldsTooRarely(epsilon=1.0, domain=131), "check_sampler"),
    (HashesTooRarely(epsilon=1.0, domain=300), "check_sampler"),
    (HashesTooRarely(epsilon=2.0, domain=2), "check_sampler"),
    (NoisesTooLittle(epsilon=2.0, domain=2), "check_sampler"),
    (NoisesTooLittle(epsilon=1.0, domain=5), "check_sampler"),
    (ReusedNoise(**SMALL), "check_batch_is_singles"),
    (ReusedNoise(**SMALL), "check_sampler"),
    (VaryingReuse(**SMALL), "check_batch_is_singles"),
    (ReusedSeed(**SMALL), "check_batch_is_singles"),
    (ReusedSeed(**SMALL), "check_variance"),
    (DrawsMoreForSome(**SMALL), "check_draws"),
    (VaryingDraws(**SMALL), "check_draws"),
    (LeakyPublicPart(**SMALL), "check_public_part"),
    (VaryingLeak(**SMALL), "check_public_part"),
    (DrawsBeforeLooking(**SMALL), "check_bad_values"),
    (KeepsTheArray(**SMALL), "check_no_aliasing"),
    (OneTooGreedy(**SMALL), "check_exact_epsilon"),
    (TooModest(**SMALL), "check_tight_epsilon"),
    (DoesNotAddUp(**SMALL), "check_normalised"),
    (RoundedLogarithm(**SMALL), "check_log_prob"),
    (RoundsDown(**SMALL), "check_effective_epsilon"),
    (TrustsTheServer(epsilon=1.0, domain=5, other=1 << 40), "check_effective_epsilon"),
    (TrustsTheServer(**SMALL), "check_hostile_spec"),
    (OneSidedRatio(**SMALL), "check_hostile_spec"),
    (Mutable(**SMALL), "check_frozen"),
    (HoldsAList(**SMALL), "check_frozen"),
    (next(Forgetful.examples()), "check_spec_round_trip"),
    (Tolerant(**SMALL), "check_spec_fields"),
    (TakesAnyHash(**SMALL), "check_spec_fields"),
    (Underspends(**SMALL), "check_event"),
    (MergeDropsN(**SMALL), "check_merge_laws"),
    (TakesAnyReport(**SMALL), "check_foreign"),
    (TakesAnyReport(**SMALL), "check_hostile_columns"),
    (WrongReportBytes(**SMALL), "check_round_trip"),
    (EstimatesFromNothing(**SMALL), "check_empty"),
    (WrongConstant(**SMALL), "check_unbiased"),
    (ClipsNegatives(**SMALL), "check_unbiased"),
    (ClipsNegatives(epsilon=0.5, domain=300), "check_unbiased"),
    (TooSure(**SMALL), "check_variance"),
    (TooSure(**SMALL), "check_coverage"),
    (UndeclaredHeuristic(**SMALL), "check_bias_declared"),
    (ForgetsCollisions(epsilon=1.0, domain=5, functions=64), "check_heuristic_error"),
    (Diffident(**SMALL), "check_heuristic_error"),
    (OverconfidentRegression(epsilon=2.0, domain=5, bits=8, cohorts=4), "check_heuristic_error"),
    (ForgetsItsCovariance(**SMALL), "check_linear"),
    (IgnoresWeights(**SMALL), "check_support"),
    (ForgetsSquares(**SMALL), "check_weights"),
    (IgnoresWeightsOfSets(epsilon=1.0, domain=Sets(Ordinal(6), most=2)), "check_support"),
    (IgnoresWeightsOfSets(epsilon=1.0, domain=Sets(Ordinal(6), most=2)), "check_weights"),
    (SureOfCandidates(**SMALL), "check_support"),
    (SureOfTotals(epsilon=2.0, domain=8, functions=16), "check_weights"),
    (TakesACohortForEveryone(**SMALL), "check_of_population"),
    (CertainOfEveryone(epsilon=8.0, low=0.0, high=1.0), "check_of_population"),
    (LiesOnlyUpward(**SMALL), "check_influence"),
    (OverstatesForgeries(**SMALL), "check_influence"),
    (WinsorisedMean(**SMALL), "check_influence"),
    (ClipsNegatives(**SMALL), "check_influence"),
    (WrongConstant(**SMALL), "check_influence"),
]
BY_NAME = {check.__name__: check for check in CHECKS}


@pytest.mark.parametrize(
    ("mechanism", "name"), PLANTED, ids=[f"{type(m).__name__}-{getattr(m, 'size', 1)}-{name}" for m, name in PLANTED]
)
def test_the_planted_bug_is_caught(mechanism: Mechanism, name: str):
    assert BY_NAME[name] in checks_for(mechanism)
    with pytest.raises(CheckFailed):
        BY_NAME[name](mechanism)


def test_every_check_catches_something():
    elsewhere = {name for name in BY_NAME if name.startswith(("check_state_", "check_transcript"))}
    elsewhere.add("check_consistent")  # test_planted_stateful.py, test_planted_consistent.py
    assert {name for _, name in PLANTED} == set(BY_NAME) - elsewhere


RIGHT = [OUE(**SMALL), OUE(epsilon=1.0, domain=131), OLH(**SMALL), SHE(epsilon=2.0, domain=2)]


@pytest.mark.parametrize(
    "mechanism",
    [GRR(**SMALL), *(pytest.param(mechanism, marks=pytest.mark.slow) for mechanism in RIGHT)],
    ids=lambda mechanism: f"{type(mechanism).__name__}-{mechanism.size}",
)
def test_the_right_classes_pass(mechanism: Mechanism):
    assert run_checks(mechanism, rng_seed=2) == tuple(check.__name__ for check in checks_for(mechanism))


def test_a_spec_one_too_greedy_is_refused():
    right = GRR(epsilon=1.0, domain=5)
    with pytest.raises(InvalidValue, match="which its integers spend"):
        GRR(epsilon=1.0, domain=5, other=right.other - 1)
    GRR(epsilon=1.0, domain=5, other=right.other + 1)
