"""The suite earns its keep here: every check catches at least one bug that was planted for it.

Statistical checks reject a right mechanism with probability 1e-6; the seeds are fixed, and each planted bug is so far
off that its own check misses it with a smaller probability than that.
"""

from __future__ import annotations

from typing import Any

import pytest

from hubbub import GRR, OLH, OUE, SHE, Ordinal, Sets
from hubbub.checks import CHECKS, CheckFailed, checks_for, run_checks
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import Mechanism
from tests.checks.planted_randomizers import (
    DrawsBeforeLooking,
    DrawsMoreForSome,
    HashesTooRarely,
    HoldsTooRarely,
    KeepsTheArray,
    KeepsTooOften,
    KeepsTooRarely,
    LeakyPublicPart,
    LiftsTooOften,
    LinksNothing,
    MemoryUnstated,
    MirroredBits,
    ModuloBias,
    NoisesTooLittle,
    NumbersHidden,
    NumbersUnstated,
    ReusedNoise,
    ReusedSeed,
    StatesNothing,
    SwappedBits,
    SwappedRates,
    VaryingDraws,
    VaryingLeak,
    VaryingReuse,
)
from tests.checks.planted_servers import (
    CertainOfEveryone,
    ClipsNegatives,
    Diffident,
    EstimatesFromNothing,
    ForgetsCollisions,
    ForgetsItsCovariance,
    ForgetsSquares,
    IgnoresWeights,
    IgnoresWeightsOfSets,
    LiesOnlyUpward,
    MergeDropsN,
    OverconfidentRegression,
    OverstatesForgeries,
    SureOfCandidates,
    SureOfTotals,
    TakesACohortForEveryone,
    TakesAnyReport,
    TooSure,
    UndeclaredHeuristic,
    WinsorisedMean,
    WrongConstant,
    WrongReportBytes,
)
from tests.checks.planted_specs import (
    DoesNotAddUp,
    Forgetful,
    HoldsAList,
    Mutable,
    OneSidedRatio,
    OneTooGreedy,
    RoundedLogarithm,
    RoundsDown,
    TakesAnyHash,
    Tolerant,
    TooModest,
    TrustsTheServer,
    Underspends,
)

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
    (NumbersUnstated(**SMALL), "check_public_part"),
    (NumbersHidden(**SMALL), "check_public_part"),
    (MemoryUnstated(**SMALL), "check_public_part"),
    (LinksNothing(**SMALL), "check_public_part"),
    (StatesNothing(**SMALL), "check_public_part"),
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
