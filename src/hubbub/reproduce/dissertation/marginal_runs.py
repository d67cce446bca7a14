"""Sweeps of chapter 6: methods, people, epsilons; how far each method's marginals are from the true ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.contingency import Floats, true_table
from hubbub.consistency.simplex import project_simplex
from hubbub.core.random import Random
from hubbub.reproduce.baselines.marginals.binary import binary_calm, fourier
from hubbub.reproduce.baselines.marginals.expectation import expectation_maximisation
from hubbub.reproduce.baselines.marginals.method import Answers, MarginalMethod, MarginalTask, calm, no_noise, uniform
from hubbub.reproduce.baselines.marginals.tables import all_marginals, full_contingency
from hubbub.reproduce.dissertation.marginal_data import KnownRecords, some_queries
from hubbub.reproduce.harness import Context

METHODS: dict[str, MarginalMethod] = {
    "CALM": calm,
    "FC": full_contingency,
    "AM": all_marginals,
    "FT": fourier,
    "EM": expectation_maximisation,
    "BE": binary_calm,
    "Uniform": uniform,
    "NoNoise": no_noise,
}
RIVALS = ("FC", "AM", "FT", "EM")
QUERIES = 50
RAW, MOVED = range(2)
"""The columns of a run: the mean SSE of the tables as estimated, and of the nearest without shares below 0."""


class MarginalSetting(NamedTuple):
    """Whose records, by which method, marginals of how many attributes, at which epsilon."""

    people: str
    method: str
    k: int
    epsilon: float


MarginalRuns = Mapping[MarginalSetting, NDArray[np.float64]]
"""Of each setting a row a run, with the columns RAW and MOVED."""


def squared_errors(answers: Answers, truth: Answers) -> tuple[float, float]:
    """The mean over the marginals of the sum of squared errors, as estimated and moved to the simplex.

    Example:
        >>> squared_errors({(0,): np.array([1.5, -0.5])}, {(0,): np.array([0.5, 0.5])})
        (2.0, 0.5)
    """
    raw = [float(((answers[query] - table) ** 2).sum()) for query, table in truth.items()]
    moved = [float(((_nearest(answers[query]) - table) ** 2).sum()) for query, table in truth.items()]
    return float(np.mean(raw)), float(np.mean(moved))


def _nearest(table: Floats) -> Floats:
    return project_simplex(table.ravel()).reshape(table.shape)


def run_once(people: KnownRecords, setting: MarginalSetting, n: int, rng: Random) -> tuple[float, float]:
    """One run: n of the people, 50 marginals at random, and how far off they are."""
    some = people.resampled(n, rng.child("people"))
    queries = some_queries(len(some.sizes), setting.k, QUERIES, rng.child("queries"))
    task = MarginalTask(some.records, some.sizes, setting.epsilon, setting.k, queries)
    answers = METHODS[setting.method](task, rng.child("reports", setting.method))
    return squared_errors(answers, {query: true_table(some.records, query, some.sizes) for query in queries})


def measure_marginals(
    context: Context, name: str, everyone: Sequence[tuple[KnownRecords, int, MarginalSetting]]
) -> dict[MarginalSetting, NDArray[np.float64]]:
    """Run every setting; runs of the same number have the same people and queries, whatever the method."""
    steps = [(people, n, setting, run) for people, n, setting in everyone for run in range(context.repeats)]
    rows: dict[MarginalSetting, list[tuple[float, float]]] = {}
    for people, n, setting, run in context.track(
        steps, lambda step: f"{', '.join(map(str, step[2]))}, run {step[3] + 1}"
    ):
        rng = context.rng.child(name, setting.people, setting.k, str(setting.epsilon), run)
        rows.setdefault(setting, []).append(run_once(people, setting, n, rng))
    return {setting: np.array(scores) for setting, scores in rows.items()}
