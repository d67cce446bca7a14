"""The Monte-Carlo bound: valid for a sound sampler, and above epsilon for one that spends more."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from hubbub import GRR, OLH, OUE, Hadamard, Random, Rappor, SubsetSelection
from hubbub.core.errors import InvalidValue
from hubbub.privacy.audit import audit
from hubbub.privacy.montecarlo import MonteCarlo, lower_bound, sample_epsilon, upper_bound


def doubled(kind: Any, *fields: str) -> Any:
    """A mechanism that says epsilon and whose sampler spends twice that; the fields shape the report."""

    class Loud(kind):
        def _randomize(self, codes, rng):
            options = {name: getattr(self, name) for name in ("domain", *fields)}
            reports = kind(epsilon=2 * self.epsilon, **options).randomize(codes, rng)
            return {**reports.public, **reports.private}

    return Loud


def least(found: MonteCarlo | None) -> float:
    """The bound that was found."""
    assert found is not None
    return found.epsilon_low


PLANTED = [
    pytest.param(doubled(GRR), 2, id="GRR-2"),
    pytest.param(doubled(GRR), 3, id="GRR-3"),
    pytest.param(doubled(OUE), 3, id="OUE-3"),
    pytest.param(doubled(OUE), 100, id="OUE-100"),
    pytest.param(doubled(OLH, "buckets"), 3, id="OLH-3"),
    pytest.param(doubled(OLH, "buckets"), 1000, id="OLH-1000"),
    pytest.param(doubled(Hadamard), 300, id="Hadamard-300"),
    pytest.param(doubled(SubsetSelection, "subset"), 9, id="SubsetSelection-9"),
]


@pytest.mark.parametrize(("kind", "domain"), PLANTED)
def test_a_sampler_that_spends_double_is_caught(kind, domain):
    # The bound is at least 1.3 where it must pass 1: with 5,000 trials a value, some 10 standard errors.
    result = audit(kind(epsilon=1.0, domain=domain), montecarlo=20_000, rng=Random(seed=11))
    assert least(result.montecarlo) > 1.3
    assert not result.ok
    assert result.to_dict()["verdict"] == "VIOLATED"
    assert result.statement().startswith("VIOLATED")
    assert "What is guaranteed" not in result.statement()


@pytest.mark.parametrize(("kind", "domain"), PLANTED)
def test_neither_structure_nor_enumeration_sees_the_sampler(kind, domain):
    assert audit(kind(epsilon=1.0, domain=domain)).ok


@pytest.mark.parametrize("domain", [2, 3, 100])
@pytest.mark.parametrize("kind", [GRR, OUE, OLH, Hadamard, SubsetSelection, Rappor])
def test_a_sound_sampler_passes(kind, domain):
    # Each passes but for a chance of 1e-3, by the bound itself: 18 settings, at most 2% for a new seed.
    result = audit(kind(epsilon=1.0, domain=domain), montecarlo=20_000, rng=Random(seed=5))
    assert result.ok
    assert least(result.montecarlo) <= result.effective_epsilon


def test_the_bound_is_close_where_the_event_is_common():
    # ln(.731/.269) = 1; two bounds at 5e-4 of 12,500 trials cost about 0.07. A miss by 0.1 is 5 standard errors.
    result = sample_epsilon(GRR(epsilon=1.0, domain=2), 50_000, Random(seed=3))
    assert result is not None
    assert 0.88 < result.epsilon_low < 1.0
    assert result.samples == 50_000
    assert sum(result.hits) < 2 * result.trials


def test_the_bound_fails_no_more_often_than_its_level():
    # At level 0.9 a sound sampler is wronged in at most 1 of 10 runs. Of 200 runs 38 or more: below 1e-4.
    mechanism = GRR(epsilon=0.5, domain=2)
    runs = [least(sample_epsilon(mechanism, 1000, Random(seed=seed), level=0.9)) for seed in range(200)]
    assert sum(bound > 0.5 for bound in runs) < 38


def test_reports_called_impossible_are_used():
    """A sampler that sends what log_prob excludes is the worst of all."""

    class Denying(GRR):
        def log_prob(self, reports, values):
            return np.where(self._same(reports, values), 0.0, -np.inf)

    assert 0.8 < least(sample_epsilon(Denying(epsilon=1.0, domain=3), 20_000, Random(seed=1))) < 1.0


@pytest.mark.parametrize("samples", [-1, 10, 999, True, 1e5])
def test_too_few_samples_are_refused(samples):
    with pytest.raises(InvalidValue, match="montecarlo"):
        audit(GRR(epsilon=1.0, domain=2), montecarlo=samples)


@pytest.mark.parametrize("level", [0, 1, 2.0])
def test_levels_are_probabilities(level):
    with pytest.raises(InvalidValue, match="level"):
        audit(GRR(epsilon=1.0, domain=2), montecarlo=2000, level=level)


@pytest.mark.parametrize("hits", [1, 7, 50, 99])
def test_each_bound_is_where_the_count_becomes_improbable(hits):
    low, high = float(lower_bound(hits, 100, 0.01)), float(upper_bound(hits, 100, 0.01))
    assert binom.sf(hits - 1, 100, low) == pytest.approx(0.01)
    assert binom.cdf(hits, 100, high) == pytest.approx(0.01)


def test_the_ends():
    assert lower_bound([0, 10], 10, 0.05).tolist() == pytest.approx([0.0, 0.05**0.1])
    assert upper_bound([0, 10], 10, 0.05).tolist() == pytest.approx([1 - 0.05**0.1, 1.0])


@pytest.mark.parametrize("chance", [0.003, 0.2, 0.5, 0.97])
def test_the_bounds_hold_at_their_level_exactly(chance):
    """The chance of a count whose bound is wrong, summed over all counts: no sampling, no tolerance."""
    counts = np.arange(61)
    weights = binom.pmf(counts, 60, chance)
    assert weights[lower_bound(counts, 60, 0.02) > chance].sum() <= 0.02
    assert weights[upper_bound(counts, 60, 0.02) < chance].sum() <= 0.02
