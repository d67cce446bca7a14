"""The share of the population that reports on each level of the tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.protocols.cohort import CIRCLE
from hubbub.protocols.sao2.reading import Digits, Pooled, Reading
from hubbub.protocols.sao2.tree import Tree

Queries = Literal["mean", "prefix", "range"]
Choice = Literal["optimum", "uniform", "paper"]
Floats = NDArray[np.float64]
_QUERIES = 512  # of a longer stream, so many steps are looked at, spread evenly over it
_CELLS = 1 << 21
_ITERATIONS = 200


def squares(reading: Reading, tree: Tree, queries: Queries) -> Floats:
    """For each level, the sum of squared coefficients over all its nodes and all estimates of a kind.

    The estimates are the values of all steps, each at its own step ("mean"); the sums over steps 1 to t, each at step t
    ("prefix"); or the sums over any steps t1 to t2, at the end ("range"). Exact up to 512 steps.
    """
    if queries not in get_args(Queries):
        raise InvalidValue("queries", queries, f"one of {', '.join(get_args(Queries))}")
    steps = tree.steps
    count = min(steps, max(16, min(_QUERIES, _CELLS // steps)))
    times = np.unique(np.linspace(1, steps, count).round().astype(np.int64))
    step = np.arange(1, steps + 1)
    total, squared_sums, sums = np.zeros(tree.levels), [], []
    for block in np.array_split(times, -(-times.size * steps // _CELLS)):
        weights = (step == block[:, None]) if queries == "mean" else (step <= block[:, None])
        now = np.full(block.size, steps) if queries == "range" else block
        coefficients = reading.coefficients(weights, now)
        total += [float((level**2).sum()) for level in coefficients]
        if queries == "range":
            squared_sums.append([(level**2).sum(axis=0) for level in coefficients])
            sums.append([level.sum(axis=0) for level in coefficients])
    if queries != "range":
        return total * (steps / times.size)
    # A range is the difference of two prefixes a < b, of which the first may be empty: the sum of all (C_b - C_a)^2.
    for level in range(tree.levels):
        squared, plain = sum(block[level] for block in squared_sums), sum(block[level] for block in sums)
        total[level] = float(((times.size + 1) * squared - plain**2).sum())
    return total * (steps / times.size) ** 2


def level_portions(
    tree: Tree,
    variances: Sequence[float],
    *,
    queries: Queries = "mean",
    choice: Choice = "optimum",
    pooled: bool = True,
) -> Floats:
    """The share W_h of the population that reports on each level.

    The mean squared error of all estimates is the sum of A_h / W_h, where A_h are their `squares` times the variance of
    a residue: the optimum is W_h in proportion to the root of A_h. With `Pooled`, A_h depends on W itself; there the
    proportion holds at the optimum, which is found by fixed-point iteration.

    Parameters
    ----------
    tree, variances
        The tree, and for each level the variance of a residue from one report.
    queries
        The estimates whose error is minimised: the values of steps, sums from the first step on, or sums over any
        range.
    choice
        "optimum"; "uniform"; or "paper", as printed in section 4: W_h in proportion to A_h. That is no better than
        uniform for prefixes, two to three times worse for ranges, and leaves the top level empty if T is a power of r.
    pooled
        Whether estimates are made by `Pooled` or by `Digits`.
    """
    by_level = np.asarray(variances, dtype=np.float64)
    if by_level.shape != (tree.levels,) or not (np.isfinite(by_level) & (by_level > 0)).all():
        raise InvalidValue("variances", variances, f"{tree.levels} numbers above 0")
    if choice not in get_args(Choice):
        raise InvalidValue("choice", choice, f"one of {', '.join(get_args(Choice))}")
    if choice == "paper":
        return _printed(tree, queries)
    portions = np.full(tree.levels, 1 / tree.levels)
    if choice == "uniform" or tree.levels == 1:
        return portions
    if not pooled:
        return _normal(np.sqrt(squares(Digits(tree), tree, queries) * by_level))
    for _ in range(_ITERATIONS):
        before = portions
        relative = by_level / np.maximum(portions, 1e-12)
        errors = squares(Pooled(tree, tuple((relative / relative.min()).tolist())), tree, queries) * by_level
        portions = _normal(np.sqrt(portions * _normal(np.sqrt(errors))))  # the plain step overshoots
        if np.abs(portions - before).max() < 1e-5:
            break
    return portions


def arc_lengths(portions: Sequence[float] | Floats) -> list[int]:
    """The portions as integers that sum to 2^32: the lengths of arcs that cover the circle."""
    shares = np.asarray(portions, dtype=np.float64)
    if shares.ndim != 1 or not (shares >= 0).all() or not abs(shares.sum() - 1) < 1e-6:
        raise InvalidValue("portions", portions, "numbers of at least 0 that sum to 1")
    edges = [round(edge * CIRCLE) for edge in np.cumsum(shares / shares.sum()).tolist()]
    edges[-1] = CIRCLE
    return [end - start for start, end in zip([0, *edges[:-1]], edges, strict=True)]


def _printed(tree: Tree, queries: Queries) -> Floats:
    if queries == "mean":
        return np.full(tree.levels, 1 / tree.levels)
    span = np.array([tree.span(level) for level in range(tree.levels)], dtype=np.float64)
    return _normal(span * (tree.steps - span) if queries == "prefix" else span)


def _normal(portions: Floats) -> Floats:
    total = portions.sum()
    return portions / total if total > 0 else np.full(portions.size, 1 / portions.size)
