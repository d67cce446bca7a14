"""The plan of a stream of changes: its tree of intervals, and the share of devices that reports on each level.

Only servers and authors of collections load this module: a device is given the resulting numbers in the mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.ternary.exsub import ExSub
from hubbub.protocols.ask import CIRCLE
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.sao2.answers import Sao2
from hubbub.protocols.sao2.tree import Pooled, arc_lengths, level_portions, squares

_ITERATIONS = 6  # the shares are then within 0.4% of the least error


def best_levels(stream: ChangeStream) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Choose, for the least error, the size m of each level's ExSub, and how many of 2^32 devices report on each
    level.
    """
    plan = Sao2(**_shape(stream), mechanism="ExSub", choice="uniform")
    sizes = tuple(mechanism.m for mechanism in plan.mechanisms if isinstance(mechanism, ExSub))
    return sizes, tuple(arc_lengths(_portions(plan)))


def plan_of(stream: ChangeStream) -> Sao2:
    """The plan with the levels, mechanisms and shares that a stream has."""
    return _StreamPlan(**_shape(stream), mechanism="ExSub", stream=stream)


@dataclass(frozen=True, kw_only=True)
class _StreamPlan(Sao2):
    """A plan that takes its mechanisms and the shares of its levels from a stream instead of choosing them."""

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
    """The share of devices on each level that has the least error: a few fixed-point iterations."""
    variances = np.asarray(plan.variances)
    portions = level_portions(plan.tree, plan.variances, pooled=False)
    for _ in range(_ITERATIONS if plan.tree.levels > 1 else 0):
        relative = variances / np.maximum(portions, 1e-12)
        errors = squares(Pooled(plan.tree, tuple((relative / relative.min()).tolist())), plan.tree, "mean") * variances
        optimal = np.sqrt(errors)
        portions = np.sqrt(portions * optimal / optimal.sum())
        portions /= portions.sum()
    return portions
