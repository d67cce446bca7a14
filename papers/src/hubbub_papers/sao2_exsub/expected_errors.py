"""The expected errors of a stream's answers, from the exact variances of residues."""

from __future__ import annotations

import math

import numpy as np

from hubbub.protocols.sao2 import Sao2
from hubbub.protocols.sao2.tree import Digits, Queries, squares


def expected_tve(plan: Sao2, queries: Queries, n: int, last: int) -> float:
    """The expected TVE of a kind of query, if errors of residues are normal: a sum of sqrt(2 variance/pi).

    Every device is assumed to use all its changes. If many have fewer, errors are a few percent smaller.

    Parameters
    ----------
    plan, queries
        The plan, and the kind of query: steps are queried as they end, sums after the last step.
    n
        The number of devices.
    last
        The last step that a query is about.
    """
    step = np.arange(1, plan.steps + 1)
    before, through = (np.arange(last), np.arange(1, last + 1)) if queries == "mean" else np.triu_indices(last + 1, 1)
    if queries == "prefix":
        before, through = before[:last], through[:last]
    weights = (step > before[:, None]) & (step <= through[:, None])
    now = through if queries == "mean" else np.full(through.size, plan.steps)
    devices = np.round(plan.portions * n).astype(np.int64)
    variance = np.zeros(through.size)
    levels = zip(plan.reading(devices).coefficients(weights, now), plan.variances, devices, strict=True)
    for coefficients, variance_of_one, number in levels:
        variance += (coefficients**2).sum(axis=1) * variance_of_one / max(int(number), 1)
    return plan.dimension * math.sqrt(2 / math.pi) * float(np.sqrt(variance).sum())


def exact_gain(plan: Sao2, queries: Queries) -> float:
    """The relative reduction of the mean squared error of all answers by a plan's portions, compared with equal
    ones.
    """
    once = squares(Digits(plan.tree), plan.tree, queries) * np.array(plan.variances)
    return 1 - float((once / plan.portions).sum() / (once * plan.tree.levels).sum())
