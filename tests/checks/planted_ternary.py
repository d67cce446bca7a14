"""Ternary mechanisms with a planted bug."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hubbub import CoCo, Collision, ExSub, NetSeed, NetSub
from hubbub.core.hashing import bucket, hash32
from hubbub.mechanisms.ternary.collision import BucketWeights
from hubbub.mechanisms.ternary.selection import advance, decide, odds
from hubbub.random.integers import ExactChoice
from tests.checks.planted import found_by

SMALL: dict[str, Any] = {"epsilon": 1.0, "dimension": 4, "sparsity": 2}


@found_by("check_normalised", m=2, **SMALL)
class OneStubTooFew(ExSub):
    """A vector with entries to spare is filled up with one stub too few: the sums of weights differ."""

    def _filled(self, symbols):
        filled = super()._filled(symbols)
        filled[:, self.dimension] = 0
        return filled


@found_by("check_normalised", m=2, **SMALL)
class NoStubs(ExSub):
    """Vectors are said as they are: how many signs a report has tells how many entries a vector has."""

    def _filled(self, symbols):
        filled = super()._filled(symbols)
        filled[:, self.dimension :] = 0
        return filled


@found_by("check_exact_epsilon", epsilon=800.0, dimension=4, sparsity=2, m=2)
class RoundedToZero(ExSub):
    """e^-eps as a float: a set that misses is impossible at a large epsilon."""

    @cached_property
    def _set_chances(self):
        meets = super()._set_chances[1]
        return Fraction(math.exp(-self.epsilon)) * meets, meets


@found_by("check_sampler", m=2, **SMALL)
class NeverMisses(ExSub):
    """The sampler drops the groups that miss: in floats their weight would be 0 against the others."""

    @cached_property
    def _groups(self):
        signs, choice = super()._groups
        meets = signs[:, 0] > 0
        return signs[meets], ExactChoice([w for w, meet in zip(choice.weights, meets, strict=True) if meet])


@found_by("check_sampler", m=2, **SMALL)
class CountsDownFirst(ExSub):
    """Algorithm 4 as printed: counts down, and then compares."""

    def _select(self, values, words, counters, rng):
        signs = np.zeros(values.shape, dtype=np.int8)
        for row in range(len(values)):
            state = counters[row].tolist()
            for column, value in enumerate(values[row].tolist()):
                plus, minus, total = odds(state, value)
                total = max(total - (1 if value else 2), plus + minus, 1)
                signs[row, column] = sign = decide(int(words[row, column]), plus, minus, total, rng)
                advance(state, value, sign)
        return signs


@found_by("check_sampler", m=2, **SMALL)
class MostlyPositive(ExSub):
    """Zeros are said with +1 only: no fair sign."""

    def _select(self, values, words, counters, rng):
        return np.where(values == 0, np.abs(signs := super()._select(values, words, counters, rng)), signs)


@found_by("check_sampler", m=4, t=1, **SMALL)
@found_by("check_unbiased", epsilon=3.0, dimension=12, sparsity=3, m=15, t=1)
class ReachesOneMore(NetSub):
    """The sampler prefers sets beyond t, and states probabilities as if at t."""

    @cached_property
    def _groups(self):
        signs, choice = super()._groups
        net = signs[:, 0] - signs[:, 1]
        held_back = [
            w * self.least >> self.bits if at == self.t else w for w, at in zip(choice.weights, net, strict=True)
        ]
        return signs, ExactChoice(held_back)


@found_by("check_normalised", m=4, t=1, **SMALL)
class NetOfRealEntries(NetSub):
    """The net is taken over the vector alone, and not over its stubs: the sums of weights differ."""

    def _filled(self, symbols):
        filled = super()._filled(symbols)
        filled[:, self.dimension :] = 0
        return filled


@found_by("check_unbiased", m=4, t=1, **SMALL)
class ForgetsReverses(NetSub):
    """Rates of another rule: any true sign counts, however many are reversed."""

    def share(self, positions, entries, size, *, trues=0, reverses=0):
        return super().share(positions, entries, size, trues=trues)


@found_by("check_unbiased", m=5, t=1, **SMALL)
class SilenceIsMinus(NetSub):
    """Where not every position is said, what is not said is counted as -1."""

    def _fold(self, reports):
        counts = super()._fold(reports)
        return np.stack([counts[0], len(reports) - counts[0]])


@found_by("check_normalised", epsilon=1.0, dimension=4, sparsity=3, t=3)
class TooFewIndependent(NetSeed):
    """Signs of which only any two are independent: some patterns have more seeds than others."""

    @property
    def code(self):
        code = super().code.copy()
        code[2:] = 0
        code[2:, ::2] = 1
        return code


@found_by("check_sampler", **SMALL)
class LeavesTheSeed(NetSeed):
    """The seed is not moved to the drawn signs: reports tell nothing."""

    def _respond(self, symbols, draws, rng):
        return super()._respond(np.full_like(symbols, -1), draws, rng)


@found_by("check_normalised", **SMALL)
class FreshOmega(Collision):
    """Where hashes fall together the others keep the weight 1: the sum of weights depends on the vector."""

    @cached_property
    def _shares(self):
        low = super()._shares[-1].least
        return tuple(BucketWeights(c * self.high, low, 0) for c in range(self.sparsity + 1))


@found_by("check_sampler", **SMALL)
@found_by("check_sampler", epsilon=1.0, dimension=40, sparsity=4)
class CollidesTooOften(Collision):
    """A hit bucket comes 30% more often than stated."""

    def _respond(self, symbols, draws, rng):
        draws = draws.copy()
        draws[:, 1] = (draws[:, 1] / 1.3).astype(np.uint64)
        return super()._respond(symbols, draws, rng)


@found_by("check_unbiased", epsilon=3.0, dimension=3, sparsity=3, buckets=8)
class FirstEntryWins(CoCo):
    """Of entries that share a pair of buckets the first one decides, and not one at random."""

    def _hash(self, seed, symbols):
        filled = np.where(symbols >= 0, symbols, 2 * (self.dimension + np.arange(self.sparsity)))
        own = bucket(hash32(seed[:, None], filled >> 1), self.buckets) ^ filled & 1
        for later in range(1, self.sparsity):
            for earlier in range(later - 1, -1, -1):
                same = own[:, later] >> 1 == own[:, earlier] >> 1
                own[same, later] = own[same, earlier]
        own.sort(axis=1)
        return super()._hash(seed, symbols)._replace(own=own)


@found_by("check_unbiased", epsilon=2.0, dimension=3, sparsity=3, buckets=8)
class ForgetsStubs(CoCo):
    """Short vectors are not filled up: their entries are overruled less often than P_ow says."""

    def _hash(self, seed, symbols):
        return super()._hash(seed, np.where(symbols >= 0, symbols, symbols[:, :1]))


@found_by("check_unbiased", **SMALL)
class SwapsSigns(Collision):
    """Counts +1 as -1."""

    def _fold(self, reports):
        return np.ascontiguousarray(super()._fold(reports)[::-1])


@found_by("check_variance", "check_influence", epsilon=1.0, dimension=2, sparsity=1, buckets=3)
class IgnoresBothSigns(Collision):
    """The variance of exclusive signs, for signs that are not."""

    @cached_property
    def rates(self):
        return super().rates._replace(both_held=Fraction(0), both_missing=Fraction(0))


@found_by("check_draws", m=2, **SMALL)
class LooksAtTheNumber(ExSub):
    """Draws more for vectors with more entries."""

    def _randomize(self, codes, rng):
        rng.bytes(int((codes >= 0).sum()))
        return super()._randomize(codes, rng)


@found_by("check_heuristic_error", epsilon=4.0, dimension=40, sparsity=2)
class SureOfRatios(ExSub):
    """Forgets that a mean among few is divided by their share."""

    def estimate(self, sketch, candidates=None, *, of="mean", signs=False):
        estimate = super().estimate(sketch, candidates, of=of, signs=signs)
        mean = super().estimate(sketch, candidates, signs=signs)
        return replace(estimate, variance=mean.variance) if of == "conditional" else estimate


@found_by("check_unbiased", **SMALL)
class CountsTooManyMissing(Collision):
    """States a p_false that is 10% too large: means do not use it, frequencies do."""

    @cached_property
    def rates(self):
        rates = super().rates
        return rates._replace(false=rates.false * Fraction(11, 10))


@found_by("check_variance", "check_coverage", m=2, **SMALL)
class SureOfFrequencies(ExSub):
    """States half of the standard error of frequencies."""

    def estimate(self, sketch, candidates=None, *, of="mean", signs=False):
        estimate = super().estimate(sketch, candidates, of=of, signs=signs)
        return replace(estimate, variance=estimate.variance / 4) if of == "frequency" else estimate
