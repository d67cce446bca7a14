"""The hierarchy: consistent noise online is the offline algorithm, exactly; variances; epsilon."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.curator.tree import NoiseTree
from hubbub.kernels.curator import FINE, make_consistent
from hubbub.random.source import Random


def sums(leaves: NDArray[np.int64], fan_out: int, layers: int) -> NDArray[np.int64]:
    """The true sums of a whole tree, the root first."""
    levels = [leaves]
    for _ in range(layers - 1):
        levels.insert(0, levels[0].reshape(-1, fan_out).sum(axis=1))
    return np.concatenate(levels)


def offline(nodes: NDArray[np.float64], fan_out: int, layers: int) -> NDArray[np.float64]:
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
