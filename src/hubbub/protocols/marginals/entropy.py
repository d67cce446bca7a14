"""The maximum-entropy distribution with given marginals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hubbub.consistency.contingency import Attributes, Floats, project

ROUNDS = 1000
SETTLED = 1e-10


def maximum_entropy(marginals: Mapping[Attributes, Floats], shape: Sequence[int]) -> Floats:
    """The table of maximum entropy that has the given marginals, by iterative proportional fitting.

    The table begins as the uniform distribution and is multiplied to match each marginal in turn. If the marginals are
    consistent with each other, this converges to the maximum-entropy table.

    Parameters
    ----------
    marginals
        Shares of at least 0, by the axes of the table; each attribute is an axis.
    shape
        The shape of the table.
    """
    axes = tuple(range(len(shape)))
    table = np.full(tuple(shape), 1.0 / np.prod(shape))
    for _ in range(ROUNDS):
        before = table
        for attributes, target in marginals.items():
            present = project(table, axes, attributes)
            factor = np.divide(target, present, out=np.zeros_like(present), where=present > 0)
            table = table * np.expand_dims(factor, tuple(axis for axis in axes if axis not in attributes))
        if len(marginals) < 2 or float(np.abs(table - before).max()) < SETTLED:
            break
    return table
