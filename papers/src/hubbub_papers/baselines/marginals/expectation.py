"""EM: a report on every attribute, each with a part of the budget, combined by expectation maximisation."""

from __future__ import annotations

import numpy as np

from hubbub.consistency.marginals import Floats, cell_of
from hubbub.consistency.norm_sub import project_simplex
from hubbub.core.event import epsilon_of, units_of
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.random.source import Random
from hubbub_papers.baselines.marginals.method import Answers, MarginalTask

ROUNDS = 200
SETTLED = 1e-6


def expectation_maximisation(task: MarginalTask, rng: Random) -> Answers:
    """EM: GRR of every attribute with epsilon/m each, and the likeliest table of each marginal.

    The search begins at the unbiased table (by the inverse of every attribute's channel), projected onto the simplex.

    Example:
        >>> task = MarginalTask(np.zeros((9000, 2), dtype=np.int64), (2, 2), 4.0, 2, [(0, 1)])
        >>> expectation_maximisation(task, Random(seed=1))[0, 1].round(1).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    part = epsilon_of(units_of(task.epsilon) // len(task.sizes))
    channels, columns = [], []
    for column, size in enumerate(task.sizes):
        oracle = GRR(epsilon=part, domain=size)
        columns.append(oracle.randomize(task.records[:, column], rng).private["value"].astype(np.int64))
        p, q = (float(rate) for rate in oracle.rates)
        channels.append(np.full((size, size), q) + (p - q) * np.eye(size))
    reported = np.stack(columns, axis=1)
    answers = {}
    for query in task.queries:
        shape = task.shape(query)
        cells = cell_of(reported, query, task.sizes)
        observed = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape) / len(reported)
        own = [channels[column] for column in query]
        unbiased = _through([np.asarray(np.linalg.inv(channel), dtype=np.float64) for channel in own], observed)
        table = project_simplex(unbiased.ravel()).reshape(shape)
        table = 0.999 * table + 0.001 / table.size  # a share of 0 would stay 0
        for _ in range(ROUNDS):
            better = table * _through(own, observed / _through(own, table))  # channels are symmetric
            change = float(abs(better - table).max())
            table = better
            if change < SETTLED:
                break
        answers[query] = table
    return answers


def _through(channels: list[Floats], table: Floats) -> Floats:
    """The table after each axis went through its channel."""
    for axis, channel in enumerate(channels):
        table = np.moveaxis(np.tensordot(channel, table, axes=(1, axis)), 0, axis)
    return table
