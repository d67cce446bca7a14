import numpy as np
import pytest
from scipy.stats import binom

from hubbub.privacy.montecarlo import lower_bound, upper_bound


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
