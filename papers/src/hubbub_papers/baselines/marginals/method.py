"""The task and the answers of a method of chapter 6; CALM itself, and the worst and best conceivable methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

from hubbub.consistency.marginals import Attributes, Codes, Floats, true_table
from hubbub.protocols.marginals.calm import release_marginals
from hubbub.random.source import Random

Answers = dict[Attributes, Floats]


@dataclass(frozen=True, eq=False)
class MarginalTask:
    """The task of a method: records, the budget of a person, and the marginals to estimate.

    Parameters
    ----------
    records, sizes
        A row of codes for each person, a code for each attribute, and the number of values of each attribute.
    epsilon
        The budget of all reports of a person together.
    k
        The number of attributes of a marginal.
    queries
        The marginals to estimate.
    """

    records: Codes
    sizes: tuple[int, ...]
    epsilon: float
    k: int
    queries: Sequence[Attributes]

    def shape(self, attributes: Attributes) -> tuple[int, ...]:
        """The shape of the table of these attributes."""
        return tuple(self.sizes[column] for column in attributes)


class MarginalMethod(Protocol):
    """A function that estimates the marginals of a task."""

    def __call__(self, task: MarginalTask, rng: Random) -> Answers: ...


def calm(task: MarginalTask, rng: Random) -> Answers:
    """CALM, with the marginals that Algorithm 2 chooses."""
    synopsis = release_marginals(task.records, task.sizes, task.epsilon, k=task.k, rng=rng)
    return {query: synopsis.table(query) for query in task.queries}


def uniform(task: MarginalTask, rng: Random) -> Answers:
    """The uniform table, independent of the records."""
    return {query: np.full(task.shape(query), 1 / prod(task.shape(query))) for query in task.queries}


def no_noise(task: MarginalTask, rng: Random) -> Answers:
    """The true marginals, without any privacy."""
    return {query: true_table(task.records, query, task.sizes) for query in task.queries}
