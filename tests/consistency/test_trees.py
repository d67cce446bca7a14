"""Consistent hierarchies are the least-squares solution, and inner nodes reduce the error."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.consistency.trees import consistent_leaves
from hubbub.core.errors import InvalidValue


def test_it_is_the_weighted_least_squares_solution() -> None:
    rng = np.random.default_rng(1)
    fanout, variances = 3, [0.5, 2.0, 1.0]
    levels = [rng.normal(size=fanout ** (h + 1)) for h in range(3)]
    leaves = fanout**3
    rows, wanted, weights = [np.ones((1, leaves))], [np.ones(1)], [1e9]  # the sum is known
    for level, variance in zip(levels, variances, strict=True):
        rows.append(np.repeat(np.eye(len(level)), leaves // len(level), axis=1))
        wanted.append(level)
        weights += [1 / variance] * len(level)
    root = np.sqrt(np.array(weights))
    solved, *_ = np.linalg.lstsq(np.vstack(rows) * root[:, None], np.concatenate(wanted) * root, rcond=None)
    assert consistent_leaves(levels, variances, fanout=fanout) == pytest.approx(solved, abs=1e-6)


def test_levels_of_other_sizes_are_refused() -> None:
    with pytest.raises(InvalidValue):
        consistent_leaves([np.zeros(2), np.zeros(3)], [1.0, 1.0], fanout=2)
