"""What a method of chapter 6 is given and what it gives back; CALM itself, and the two ends of the scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

from hubbub.consistency.contingency import Attributes, Codes, Floats, true_table
from hubbub.core.random import Random
from hubbub.protocols.marginals.calm import release_marginals

Answers = dict[Attributes, Floats]


@dataclass(frozen=True, eq=False)
class MarginalTask:
    """Records, what a person's reports may spend, and the marginals that are wanted.

    Parameters
    ----------
    records, sizes
        A row a person with a code for each attribute, and how many values each attribute has.
    epsilon
        What all reports of a person spend together.
    k
        How many attributes the wanted marginals have.
    queries
        The wanted marginals.
    """

    records: Codes
    sizes: tuple[int, ...]
    epsilon: float
    k: int
    queries: Sequence[Attributes]

    def shape(self, attributes: Attributes) -> tuple[int, ...]:
        """Of the table of some attributes.

        Example:
            >>> MarginalTask(np.zeros((1, 2), dtype=np.int64), (2, 3), 1.0, 2, [(0, 1)]).shape((0, 1))
            (2, 3)
        """
        return tuple(self.sizes[column] for column in attributes)


class MarginalMethod(Protocol):
    """Estimates the wanted marginals."""

    def __call__(self, task: MarginalTask, rng: Random) -> Answers: ...


def calm(task: MarginalTask, rng: Random) -> Answers:
    """CALM, with the marginals that Algorithm 2 chooses.

    Example:
        >>> records = np.zeros((9000, 3), dtype=np.int64)
        >>> task = MarginalTask(records, (2, 2, 2), 1.0, 2, [(0, 1)])
        >>> calm(task, Random(seed=1))[0, 1].round(1).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    synopsis = release_marginals(task.records, task.sizes, task.epsilon, k=task.k, rng=rng)
    return {query: synopsis.table(query) for query in task.queries}


def uniform(task: MarginalTask, rng: Random) -> Answers:
    """Every cell alike, whatever people hold.

    Example:
        >>> task = MarginalTask(np.zeros((9, 2), dtype=np.int64), (2, 2), 1.0, 2, [(0, 1)])
        >>> uniform(task, Random(seed=1))[0, 1].tolist()
        [[0.25, 0.25], [0.25, 0.25]]
    """
    return {query: np.full(task.shape(query), 1 / prod(task.shape(query))) for query in task.queries}


def no_noise(task: MarginalTask, rng: Random) -> Answers:
    """The true marginals, without any privacy.

    Example:
        >>> task = MarginalTask(np.zeros((9, 2), dtype=np.int64), (2, 2), 1.0, 2, [(0, 1)])
        >>> no_noise(task, Random(seed=1))[0, 1].tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    return {query: true_table(task.records, query, task.sizes) for query in task.queries}
