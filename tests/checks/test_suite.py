"""Which checks apply, how a class opts out, and what a failure says."""

from typing import ClassVar

import numpy as np
import pytest

from hubbub import GRR, OUE, Measured, Rappor, SquareWave
from hubbub.checks import CHECKS, CheckFailed, checks_for, run_checks, some_values
from hubbub.checks.failure import fit, mean_is, same_counts, smallest
from hubbub.checks.probability import enumerate_outputs, row_keys, worst_ratio
from hubbub.checks.values import bad_batches, truth_of
from hubbub.core.domain import Numeric, Ordinal, Sets, Strings
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.numeric.hybrid import Piecewise
from hubbub.mechanisms.stateful import Stateful
from hubbub.random.source import Random


def names(mechanism: ReportFormat) -> set[str]:
    return {check.__name__ for check in checks_for(mechanism)}


def test_an_unbiased_oracle_gets_every_check_but_those_of_biased_estimates_and_of_state():
    missing = {check.__name__ for check in CHECKS} - names(GRR(epsilon=1.0, domain=3))
    stateful = {name for name in missing if name.startswith(("check_state_", "check_transcript"))}
    assert missing - stateful == {"check_heuristic_error", "check_consistent"}


def test_a_heuristic_is_not_asked_to_be_unbiased():
    missing = {check.__name__ for check in CHECKS} - names(Rappor(epsilon=1.0))
    assert {"check_unbiased", "check_variance", "check_coverage"} <= missing
    assert {"check_bias_declared", "check_heuristic_error"} <= names(Rappor(epsilon=1.0))


def test_estimates_that_are_consistent_have_a_check_of_their_own():
    wave = names(SquareWave(epsilon=1.0, cells=7))
    assert "check_consistent" in wave
    assert "check_unbiased" not in wave


def test_every_mechanism_that_remembers_is_checked():
    remembering = {name: kind for name, kind in MECHANISMS.items() if issubclass(kind, Stateful)}
    assert set(remembering) == {"BasicRappor", "BloomRappor", "Loloha", "ChangeStream", "NetStream"}
    states = {"check_state_batches", "check_state_price", "check_state_silence", "check_state_bytes"}
    for kind in remembering.values():
        examples = list(kind.examples())
        assert all(states <= names(mechanism) for mechanism in examples)
        assert {"check_transcript_epsilon", "check_transcripts"} <= names(examples[0])


def test_outputs_that_cannot_be_listed_are_not_enumerated():
    missing = {"check_normalised", "check_exact_epsilon", "check_tight_epsilon"}
    assert not missing & names(OUE(epsilon=1.0, domain=131))
    assert missing <= names(OUE(epsilon=1.0, domain=5))


class OptsOut(GRR):
    skip_checks: ClassVar[dict[str, str]] = {"check_coverage": "its intervals are wide on purpose"}


class OptsOutOfNothing(GRR):
    skip_checks: ClassVar[dict[str, str]] = {"check_converage": "a typing error"}


def test_a_class_opts_out_by_name():
    assert "check_coverage" not in names(OptsOut(epsilon=1.0, domain=3))


def test_an_unknown_opt_out_is_noticed():
    with pytest.raises(CheckFailed, match="check_converage"):
        checks_for(OptsOutOfNothing(epsilon=1.0, domain=3))


class SaysNoTruth(Measured):
    truth = None  # type: ignore[assignment]


def test_estimates_without_a_known_truth_fail():
    mechanism = SaysNoTruth(epsilon=1.0, domain=3)
    with pytest.raises(CheckFailed, match=r"give the mechanism a method `truth\(values\)`"):
        run_checks(mechanism)


class Breaks(GRR):
    def event(self):
        raise ZeroDivisionError("nothing to divide by")


def test_a_failure_names_the_check_the_mechanism_and_the_cause():
    with pytest.raises(CheckFailed, match=r"check_event of Breaks\(.*ZeroDivisionError: nothing to divide by"):
        run_checks(Breaks(epsilon=1.0, domain=3))


def test_populations_have_common_rare_and_absent_values():
    values = some_values(GRR(epsilon=1.0, domain=8), 1000, Random(seed=1))
    counts = np.bincount(values, minlength=8)
    assert counts.sum() == 1000
    assert (counts[:4] > 0).all()
    assert (counts[4:] == 0).all()
    assert counts[0] > 3 * counts[3]


@pytest.mark.parametrize(
    "domain", [Ordinal(9), Numeric(0.0, 1.0, cells=4), Strings(longest=8)], ids=lambda domain: type(domain).__name__
)
def test_values_are_in_the_domain_and_bad_ones_are_not(domain):
    mechanism = Rappor(epsilon=1.0, domain=domain)
    codes = mechanism.encode(list(mechanism.example_values(5)))
    assert np.unique(codes).size == (4 if isinstance(domain, Numeric) else 5)
    for bad in bad_batches(mechanism):
        with pytest.raises(InvalidValue):
            mechanism.encode(bad)


def test_values_of_a_range():
    mean = Piecewise(epsilon=1.0, low=0.0, high=10.0)
    assert mean.example_values(3) == [0.0, 5.0, 10.0]
    assert truth_of(mean, np.array([1.0, 2.0, 6.0])) == pytest.approx([3.0])
    for bad in bad_batches(mean):
        with pytest.raises(InvalidValue):
            mean.encode(bad)


def test_values_of_sets():
    mechanism = Rappor(epsilon=1.0, domain=Sets(Ordinal(9), most=2))
    sets = mechanism.example_values(4)
    assert mechanism.encode(sets).shape == (4, 2)
    for bad in bad_batches(mechanism):
        with pytest.raises(InvalidValue):
            mechanism.encode(bad)


def test_enumeration_finds_the_worst_ratio():
    mechanism = OUE(epsilon=1.0, domain=3)
    (only,) = enumerate_outputs(mechanism, 1)
    assert only.prob.shape == (8, 3)
    assert float(worst_ratio([only])) == pytest.approx(float(mechanism.ratio()))


def test_row_keys_tell_rows_apart():
    keys = row_keys({"a": np.array([1, 1, 2], "u2"), "b": np.array([[0, 1], [0, 1], [0, 1]], "u1")}, 3)
    assert keys[0] == keys[1] != keys[2]
    assert row_keys({}, 2) == [b"", b""]


def test_chi_square_against_scipy():
    from scipy.stats import chisquare

    observed, expected = np.array([90, 110, 210]), np.array([100.0, 100.0, 210.0])
    assert fit(observed, expected) == pytest.approx(chisquare(observed, expected).pvalue)


def test_small_cells_are_pooled_and_impossible_ones_are_not_forgiven():
    assert fit(np.array([1000, 3, 2]), np.array([1000.0, 2.5, 2.5])) == 1.0
    assert fit(np.array([1000, 1]), np.array([1001.0, 0.0])) == 0.0


def test_p_values_are_uniform_where_all_is_well():
    # 400 p-values: a Kolmogorov-Smirnov test with failure probability 1e-6.
    from scipy.stats import kstest

    rng = np.random.default_rng(1)
    chances = np.array([0.5, 0.3, 0.15, 0.05])
    fits = [fit(rng.multinomial(2000, chances), 2000 * chances) for _ in range(400)]
    same = [same_counts(rng.multinomial(2000, chances), rng.multinomial(3000, chances)) for _ in range(400)]
    means = mean_is(rng.normal(3.0, 2.0, size=(50, 400)), 3.0)
    for p_values in (fits, same, means):
        assert kstest(p_values, "uniform").pvalue > 1e-6


def test_means_that_are_off_are_seen():
    rng = np.random.default_rng(1)
    assert smallest(mean_is(rng.normal(0.3, 1.0, size=(1000, 3)), 0.0)) < 1e-6
    assert smallest([]) == 1.0
