"""Hierarchies made consistent: every node is the sum of its children, with the least squared error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue

Floats = NDArray[np.float64]


def consistent_leaves(levels: Sequence[Floats], variances: Sequence[float], *, fanout: int) -> Floats:
    """The leaves of a tree whose levels were estimated independently; the shares of each level sum to 1.

    First, from the leaves up, each node becomes the mean of its own estimate and the sum of its children, weighted by
    their inverse variances. Then, from the root down, the difference between a node and the sum of its children is
    distributed evenly over the children. This is the least-squares solution where all nodes of a level have one
    variance.

    Parameters
    ----------
    levels
        The estimated shares of each level, below the root first: fanout, fanout^2, ... numbers.
    variances
        Of one number of each level.
    fanout
        How many children a node has.
    """
    if len(levels) != len(variances) or any(len(level) != fanout ** (h + 1) for h, level in enumerate(levels)):
        raise InvalidValue("levels", [len(level) for level in levels], f"powers of {fanout}, with a variance each")
    nodes, spread = [np.asarray(levels[-1], dtype=np.float64)], float(variances[-1])
    for level, variance in zip(levels[-2::-1], variances[-2::-1], strict=True):
        below, below_variance = nodes[0].reshape(-1, fanout).sum(axis=1), spread * fanout
        weight = below_variance / (below_variance + variance)
        nodes.insert(0, weight * level + (1 - weight) * below)
        spread = variance * below_variance / (variance + below_variance)
    parent = np.ones(1)
    for level in nodes:
        children = level.reshape(-1, fanout)
        parent = (children + ((parent - children.sum(axis=1)) / fanout)[:, None]).reshape(-1)
    return parent
