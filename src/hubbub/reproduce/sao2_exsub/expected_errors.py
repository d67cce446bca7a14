"""What the errors of a stream's answers come to on paper, from the exact variances of residues."""

from __future__ import annotations

import math

import numpy as np

from hubbub.protocols.sao2 import Sao2
from hubbub.protocols.sao2.portions import Queries, squares
from hubbub.protocols.sao2.reading import Digits


def expected_tve(plan: Sao2, queries: Queries, n: int, last: int) -> float:
    """The mean TVE of answers of a kind up to a step, where errors of residues are normal: sqrt(2 variance/pi) each.

    Every device is taken to use all its changes; where many have fewer, errors are a few percent smaller.

    Parameters
    ----------
    plan, queries
        What is told, and what is asked: steps as they end, sums when all have ended.
    n
        How many devices there are.
    last
        The last step that an answer is about.

    Example:
        >>> plan = Sao2(epsilon=1.0, dimension=1, steps=8, changes=2)
        >>> once, twice = (expected_tve(plan, "range", n, 8) for n in (40_000, 10_000))
        >>> round(twice / once, 2)
        2.0
    """
    step = np.arange(1, plan.steps + 1)
    before, through = (np.arange(last), np.arange(1, last + 1)) if queries == "mean" else np.triu_indices(last + 1, 1)
    if queries == "prefix":
        before, through = before[:last], through[:last]
    weights = (step > before[:, None]) & (step <= through[:, None])
    now = through if queries == "mean" else np.full(through.size, plan.steps)
    told = np.round(plan.portions * n).astype(np.int64)
    variance = np.zeros(through.size)
    for each, spread, devices in zip(plan.reading(told).coefficients(weights, now), plan.variances, told, strict=True):
        variance += (each**2).sum(axis=1) * spread / max(int(devices), 1)
    return plan.dimension * math.sqrt(2 / math.pi) * float(np.sqrt(variance).sum())


def exact_gain(plan: Sao2, queries: Queries) -> float:
    """By how much a plan's portions cut the mean squared error of all answers, against equal ones, read by digits.

    Example:
        >>> best = Sao2(epsilon=1.0, dimension=1, steps=8, changes=2, pooled=False, queries="range")
        >>> 0.1 < exact_gain(best, "range") < 0.5
        True
    """
    once = squares(Digits(plan.tree), plan.tree, queries) * np.array(plan.variances)
    return 1 - float((once / plan.portions).sum() / (once * plan.tree.levels).sum())
