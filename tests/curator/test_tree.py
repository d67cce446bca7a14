"""The hierarchy: consistent noise online is the offline algorithm, exactly; Noisy Max in integers."""

import math
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.curator import tops
from hubbub.curator.tops import NOISES, ThresholdSearch
from hubbub.curator.tree import NoiseTree
from hubbub.kernels.curator import FINE, make_consistent
from hubbub.random.source import Random


def sums(leaves: NDArray[np.int64], fan_out: int, layers: int) -> NDArray[np.int64]:
    """The true sums of a whole tree, the root first."""
    levels = [leaves]
    for _ in range(layers - 1):
        levels.insert(0, levels[0].reshape(-1, fan_out).sum(axis=1))
    return np.concatenate(levels)


def offline(nodes: NDArray[np.float64], fan_out: int, layers: int) -> NDArray[np.longdouble]:
    """Equations 10 and 11 as the paper prints them, in floats, on values with noise."""
    cuts = np.cumsum([fan_out**level for level in range(layers - 1)])
    levels = np.split(nodes.astype(np.longdouble), cuts)
    for level in range(layers - 2, -1, -1):
        height = layers - level
        top, low = fan_out**height, fan_out ** (height - 1)
        children = levels[level + 1].reshape(-1, fan_out).sum(axis=1)
        levels[level] = (top - low) / np.longdouble(top - 1) * levels[level] + (low - 1) / np.longdouble(
            top - 1
        ) * children
    for level in range(1, layers):
        groups = levels[level].reshape(-1, fan_out)
        others = groups.sum(axis=1, keepdims=True) - groups
        new = (fan_out - 1) / np.longdouble(fan_out) * groups + (levels[level - 1][:, None] - others) / fan_out
        levels[level] = new.reshape(-1)
    return levels[-1]


@pytest.mark.parametrize(("fan_out", "layers"), [(2, 1), (2, 9), (3, 5), (16, 2), (16, 4)])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_online_consistency_is_the_offline_algorithm(fan_out: int, layers: int, epsilon: float) -> None:
    tree = NoiseTree(epsilon=Fraction(epsilon), fan_out=fan_out, layers=layers)
    raw = tree.raw_noise(Random(seed=7))
    leaves = Random(seed=8).below(tree.cells + 1, tree.leaves)
    truth = sums(leaves, fan_out, layers) * FINE
    online = leaves * FINE + make_consistent(raw.copy(), fan_out, layers)
    # Post-processing of values with noise, to the last bit: nothing depends on the true values alone.
    assert np.array_equal(online, make_consistent(raw + truth, fan_out, layers))
    printed = offline((raw + truth).astype(np.float64), fan_out, layers)
    assert np.abs(online - printed).max() <= 1e-9 * np.abs(printed).max()


def test_a_pass_that_is_left_out_is_found() -> None:
    tree = NoiseTree(epsilon=Fraction(1), fan_out=3, layers=3)
    raw = tree.raw_noise(Random(seed=7))
    printed = offline(raw.astype(np.float64), 3, 3)
    assert np.abs(raw[-9:] - printed).max() > 1e-3 * np.abs(printed).max()


def test_consistent_nodes_are_the_sums_of_their_children() -> None:
    nodes = NoiseTree(epsilon=Fraction(1), fan_out=4, layers=4).raw_noise(Random(seed=1))
    leaves = make_consistent(nodes, 4, 4)
    assert np.array_equal(nodes, sums(leaves, 4, 4))


def test_the_variance_of_a_range_is_the_least_squares_one() -> None:
    """Against q (A'A)^-1 q of the whole design, for every range of a small tree."""
    tree = NoiseTree(epsilon=Fraction(1), fan_out=3, layers=3)
    rows = [np.kron(np.eye(3**level), np.ones(9 // 3**level)) for level in range(3)]
    covariance = np.linalg.inv(np.concatenate(rows).T @ np.concatenate(rows))
    for first in range(9):
        for last in range(first + 1, 10):
            query = np.zeros(9)
            query[first:last] = 1
            assert tree.range_variance(first, last) == pytest.approx(query @ covariance @ query, rel=1e-12)


def test_the_noise_has_that_variance() -> None:
    """2,000 trees: within 20%, some six standard errors of a variance; without consistency it is out of reach."""
    tree, rng = NoiseTree(epsilon=Fraction(1), fan_out=4, layers=3), Random(seed=9)
    noise = np.array([tree.noise(rng) for _ in range(2000)]) / (FINE * tree.cells)
    expected = tree.range_variance(3, 14) * tree.node_variance()
    assert noise[:, 3:14].sum(axis=1).var() == pytest.approx(expected, rel=0.2)
    raw = np.array([tree.raw_noise(rng)[-16:] for _ in range(500)]) / (FINE * tree.cells)
    assert raw[:, 3:14].sum(axis=1).var() > 1.5 * expected


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.05, 0.3, 1.0, 17.0])
@pytest.mark.parametrize("layers", [1, 3, 5, 20])
def test_epsilon_is_exact_and_at_most_what_was_asked(epsilon: float, layers: int) -> None:
    if ceil(layers / Fraction(epsilon)) > 1 << 28:
        with pytest.raises(InvalidValue, match="epsilon"):
            NoiseTree(epsilon=Fraction(epsilon), layers=layers)
        return
    tree = NoiseTree(epsilon=Fraction(epsilon), fan_out=2, layers=layers)
    assert tree.effective_epsilon == Fraction(layers * tree.cells, tree.scale) <= Fraction(epsilon)
    assert tree.effective_epsilon > Fraction(epsilon) * (
        1 - Fraction(1, 10**5) * max(1, int(epsilon)) - Fraction(layers, tree.scale)
    )


def nodes_of(first: int, last: int, fan_out: int, layers: int) -> int:
    """How many nodes of a hierarchy without a root add up to a range."""
    count = 0
    for _ in range(layers - 1):
        up, down = -(-first // fan_out), last // fan_out
        if up >= down:
            break
        count += up * fan_out - first + last - down * fan_out
        first, last = up, down
    return count + last - first


def test_the_ratios_of_hierarchies_on_random_ranges() -> None:
    """r = 2^20, 1,000 random ranges, exact variances: H16 with consistency to H16, H16 to H2."""
    ends = np.sort(Random(seed=3).below((1 << 20) + 1, 2000).reshape(-1, 2), axis=1)
    consistent = NoiseTree(epsilon=Fraction(1), fan_out=16, layers=5)
    h2 = 20**2 * np.mean([nodes_of(int(a), int(b), 2, 20) for a, b in ends])
    h16 = 5**2 * np.mean([nodes_of(int(a), int(b), 16, 5) for a, b in ends])
    ours = 5**2 * np.mean([consistent.row_variance(int(a), int(b)) for a, b in ends])
    assert h16 / h2 < 0.25
    assert ours / h16 < 0.4


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
    monkeypatch.setattr(tops, "MOST_CELLS", 4)
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
