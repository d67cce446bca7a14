"""The plan behind a stream of changes: the tree that answers are read from, and the parts of its levels.

Only a server, and who writes a collection, needs it: a device is given the numbers that come out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.ternary.exsub import ExSub
from hubbub.protocols.change_stream import ChangeStream
from hubbub.protocols.cohort import CIRCLE
from hubbub.protocols.sao2.plan import Sao2
from hubbub.protocols.sao2.portions import arc_lengths, level_portions, squares
from hubbub.protocols.sao2.reading import Pooled

_ROUNDS = 6  # the parts are then within 0.4% of the least error


def chosen(stream: ChangeStream) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes m of the levels' ExSub, and of 2^32 devices how many tell of each level: for the least error.

    Example:
        >>> sizes, lengths = chosen(ChangeStream(epsilon=1.0, dimension=2, steps=4, changes=2))
        >>> sizes, [round(length / CIRCLE, 2) for length in lengths]
        ((3, 2, 1), [0.59, 0.31, 0.09])
    """
    plan = Sao2(**_shape(stream), mechanism="ExSub", choice="uniform")
    sizes = tuple(mechanism.m for mechanism in plan.mechanisms if isinstance(mechanism, ExSub))
    return sizes, tuple(arc_lengths(_portions(plan)))


def plan_of(stream: ChangeStream) -> Sao2:
    """The plan of a stream: its levels, mechanisms and parts are those that are given.

    Example:
        >>> plan_of(ChangeStream(epsilon=1.0, dimension=2, steps=4, changes=2)).tree.nodes
        (4, 2, 1)
    """
    return _Given(**_shape(stream), mechanism="ExSub", stream=stream)


@dataclass(frozen=True, kw_only=True)
class _Given(Sao2):
    """A plan whose mechanisms and parts are given instead of chosen."""

    stream: ChangeStream

    @cached_property
    def mechanisms(self) -> tuple[ExSub, ...]:
        return self.stream.mechanisms

    @cached_property
    def portions(self) -> NDArray[np.float64]:
        return np.array(self.stream.lengths, dtype=np.float64) / CIRCLE


def _shape(stream: ChangeStream) -> dict[str, Any]:
    return {name: getattr(stream, name) for name in ("epsilon", "dimension", "steps", "changes", "one", "fanout")}


def _portions(plan: Sao2) -> NDArray[np.float64]:
    """The parts of the levels for the least error: from those of the plain reading, in a few turns."""
    variances = np.asarray(plan.variances)
    portions = level_portions(plan.tree, plan.variances, pooled=False)
    for _ in range(_ROUNDS if plan.tree.levels > 1 else 0):
        weighed = variances / np.maximum(portions, 1e-12)
        errors = squares(Pooled(plan.tree, tuple((weighed / weighed.min()).tolist())), plan.tree, "mean") * variances
        wanted = np.sqrt(errors)
        portions = np.sqrt(portions * wanted / wanted.sum())
        portions /= portions.sum()
    return portions
