"""Sweeps of chapter 6: methods, people and epsilons, and the squared errors of each method's marginals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.marginals import Floats, true_table
from hubbub.consistency.norm_sub import project_simplex
from hubbub.random.source import Random
from hubbub_papers.baselines.marginals.binary import binary_calm, fourier
from hubbub_papers.baselines.marginals.expectation import expectation_maximisation
from hubbub_papers.baselines.marginals.method import Answers, MarginalMethod, MarginalTask, calm, no_noise, uniform
from hubbub_papers.baselines.marginals.tables import all_marginals, full_contingency
from hubbub_papers.dissertation.marginal_data import KnownRecords, some_queries
from hubbub_papers.harness import Context, RunScores

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
"""The columns of a run: the mean SSE of the tables as estimated, and of the tables projected onto the simplex."""


class MarginalSetting(NamedTuple):
    """The people, the method, the number k of attributes of a marginal, and epsilon."""

    people: str
    method: str
    k: int
    epsilon: float


MarginalRuns = RunScores[MarginalSetting]
"""By setting, one row a run with the columns RAW and MOVED."""


def squared_errors(answers: Answers, truth: Answers) -> tuple[float, float]:
    """The sum of squared errors of a marginal, averaged over the marginals: as estimated, and moved to the simplex."""
    raw = [float(((answers[query] - table) ** 2).sum()) for query, table in truth.items()]
    moved = [float(((_nearest(answers[query]) - table) ** 2).sum()) for query, table in truth.items()]
    return float(np.mean(raw)), float(np.mean(moved))


def _nearest(table: Floats) -> Floats:
    return project_simplex(table.ravel()).reshape(table.shape)


def run_once(people: KnownRecords, setting: MarginalSetting, n: int, rng: Random) -> tuple[float, float]:
    """One run: draw n of the people and 50 random marginals, and return the errors of the method on these."""
    sample = people.resampled(n, rng.child("people"))
    queries = some_queries(len(sample.sizes), setting.k, QUERIES, rng.child("queries"))
    task = MarginalTask(sample.records, sample.sizes, setting.epsilon, setting.k, queries)
    answers = METHODS[setting.method](task, rng.child("reports", setting.method))
    return squared_errors(answers, {query: true_table(sample.records, query, sample.sizes) for query in queries})


def measure_marginals(
    context: Context, name: str, everyone: Sequence[tuple[KnownRecords, int, MarginalSetting]]
) -> dict[MarginalSetting, NDArray[np.float64]]:
    """Run every setting; runs of the same number have the same people and queries, whatever the method."""

    def scores(step: tuple[KnownRecords, int, MarginalSetting], run: int) -> dict[MarginalSetting, tuple[float, float]]:
        people, n, setting = step
        rng = context.rng.child(name, setting.people, setting.k, str(setting.epsilon), run)
        return {setting: run_once(people, setting, n, rng)}

    return context.measure(everyone, scores, lambda step: ", ".join(map(str, step[2])))
