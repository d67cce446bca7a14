"""FC and AM: a report on the whole contingency table, or on one of all marginals of k attributes."""

from __future__ import annotations

from math import comb, prod

import numpy as np

from hubbub.consistency.marginals import Floats, cell_of, project
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator
from hubbub_papers.baselines.marginals.method import Answers, MarginalTask

MOST_CELLS = 1 << 20


def full_contingency(task: MarginalTask, rng: Random) -> Answers:
    """FC: everybody reports their cell of the table of all attributes; a marginal is a sum of its cells (Eq 6.1).

    The supports of unary encoding are drawn from their distribution, which is the same as that of real reports.
    """
    everything = tuple(range(len(task.sizes)))
    cells = prod(task.sizes)
    if cells > MOST_CELLS:
        raise InvalidValue("sizes", cells, f"at most {MOST_CELLS:,} cells for FC")
    table = _shares(task, cell_of(task.records, everything, task.sizes), cells, rng).reshape(task.sizes)
    return {query: project(table, everything, query) for query in task.queries}


def all_marginals(task: MarginalTask, rng: Random) -> Answers:
    """AM: everybody reports their cell of one of all marginals of k attributes (Eq 6.2).

    Only people whose marginal is asked for are simulated. A marginal that nobody reported on is uniform.
    """
    queries = list(dict.fromkeys(task.queries))
    if any(len(query) != task.k for query in queries):
        raise InvalidValue("queries", queries, f"marginals of {task.k} attributes: AM answers no other")
    chosen = rng.below(comb(len(task.sizes), task.k), len(task.records))
    answers = {}
    for place, query in enumerate(queries):
        shape = task.shape(query)
        values = cell_of(task.records[chosen == place], query, task.sizes)
        shares = _shares(task, values, prod(shape), rng) if values.size else np.full(prod(shape), 1 / prod(shape))
        answers[query] = shares.reshape(shape)
    return answers


def _shares(task: MarginalTask, values: np.ndarray, cells: int, rng: Random) -> Floats:
    """Estimated shares of the cells, by the oracle with the smallest variance."""
    oracle = adaptive(epsilon=task.epsilon, domain=cells, most_bytes=MOST_CELLS)
    if isinstance(oracle, GRR):
        return np.asarray(oracle.estimate(oracle.accumulate(oracle.randomize(values, rng))).value)
    p, q = (float(rate) for rate in oracle.rates)
    held = np.bincount(values, minlength=cells)
    draws = generator(rng)
    supports = draws.binomial(held, p) + draws.binomial(values.size - held, q)
    return np.asarray((supports / values.size - q) / (p - q))
