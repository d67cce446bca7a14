"""Noisy Max in integers: its epsilon by enumeration, its choice."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.curator import threshold
from hubbub.curator.threshold import NOISES, ThresholdSearch
from hubbub.random.source import Random

REACH = 400


def law(noise: str, decay: float) -> np.ndarray:
    """P(k), k from -REACH to REACH."""
    k = np.arange(-REACH, REACH + 1)
    if noise == "laplace":
        return (1 - decay) / (1 + decay) * decay ** np.abs(k)
    return np.where(k >= 0, (1 - decay) * decay ** np.maximum(k, 0), 0.0)


def chances(scores: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """The exact chance that each candidate wins, ties to the first."""
    out = []
    below = np.concatenate([[0.0], np.cumsum(chance)])  # P(noise < k), k from -REACH
    size = chance.size
    for i, own in enumerate(scores):
        wins = chance.copy()
        for j, other in enumerate(scores):
            if j != i:
                # noise_j < noise_i + own - other, or equal where j comes after i
                places = np.arange(size) + own - other + (1 if j > i else 0)
                wins *= below[np.clip(places, 0, size)]
        out.append(wins.sum())
    return np.array(out)


@pytest.mark.parametrize("noise", NOISES)
def test_no_neighbour_is_more_than_epsilon_away(noise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair of streams of two values over three candidates, in exact chances."""
    monkeypatch.setattr(threshold, "_MOST_CELLS", 4)
    search = ThresholdSearch(epsilon=Fraction(1, 2), bound=3.0, candidates=3, slope=0.11, noise=noise)
    assert search.cells == 4
    chance = law(noise, math.exp(-1 / search.scale))
    worst = 0.0
    for other in (1.0, 2.0, 3.0):
        rows = [chances(search.scores(search.count(np.array([own, other]))), chance) for own in (1.0, 2.0, 3.0)]
        worst = max(worst, max(float(np.log(a / b).max()) for a in rows for b in rows))
    assert 0.3 < worst <= float(search.effective_epsilon) + 1e-9
    # With half the noise it would be: the enumeration can tell.
    halved = law(noise, math.exp(-2 / search.scale))
    rows = [chances(search.scores(search.count(np.array([own, 3.0]))), halved) for own in (1.0, 3.0)]
    assert float(np.log(rows[0] / rows[1]).max()) > float(search.effective_epsilon) * 1.1


@pytest.mark.parametrize("noise", NOISES)
def test_the_sampler_follows_those_chances(noise: str) -> None:
    """3,000 choices among three: 5 standard errors."""
    search = ThresholdSearch(epsilon=Fraction(1, 2), bound=3.0, candidates=3, slope=0.2, noise=noise)
    counts, rng = search.count(np.array([1.0, 1.0, 2.0, 3.0])), Random(seed=4)
    thresholds = np.array([search.choose(counts, rng) for _ in range(3000)])
    cells = search.cells  # the law on a coarser grid is the same to 1e-3
    scores = np.rint(search.scores(counts) / cells * 32).astype(int)
    expected = chances(scores, law(noise, math.exp(-float(search.epsilon) / 32)))
    for candidate, chance in zip((1.0, 2.0, 3.0), expected, strict=True):
        assert abs((thresholds == candidate).mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / 3000) + 0.01


def test_m_theta_counts_what_is_above() -> None:
    search = ThresholdSearch(epsilon=Fraction(1), bound=4.0, candidates=4, slope=0.0)
    assert search.count(np.array([0.0, 1.0, 1.5, 4.0])).tolist() == [2, 1, 0, 1]
    assert (search.scores(np.array([2, 1, 0, 1])) / search.cells).tolist() == [-2, -1, -1, 0]


def test_without_noise_to_speak_of_it_is_the_best_score() -> None:
    values = np.minimum(np.random.default_rng(1).gamma(2, 20, 5000), 500)
    search = ThresholdSearch(epsilon=Fraction(1000), bound=500.0, candidates=500, slope=2e-3)
    best = float(search.thresholds[np.argmax(search.scores(search.count(values)))])
    assert abs(search.choose(search.count(values), Random(seed=1)) - best) <= 2
    assert abs(search.choose(search.count(values), Random(seed=2)) - best) <= 2


def test_what_cannot_be_drawn_exactly_is_refused() -> None:
    with pytest.raises(InvalidValue, match="epsilon"):
        ThresholdSearch(epsilon=Fraction(1, 1 << 29), bound=1.0, candidates=2, slope=1.0)
    with pytest.raises(InvalidValue, match="noise"):
        ThresholdSearch(epsilon=Fraction(1), bound=1.0, candidates=2, slope=1.0, noise="gumbel")
