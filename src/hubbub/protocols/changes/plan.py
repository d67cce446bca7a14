"""The plan of a stream of changes: its tree of intervals, and the share of devices that reports on each level.

Only servers and authors of collections load this module: a device is given the resulting numbers in the mechanism.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hubbub.core.reports import Floats
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.protocols.ask import CIRCLE
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.sao2.answers import Sao2
from hubbub.protocols.sao2.tree import Pooled, Queries, arc_lengths, level_portions, squares

LEAST_PORTION = 0.002
"""A level with a smaller part of the devices is not used: it would add next to nothing."""
_ITERATIONS = 10  # the error is then within 0.2% of the least


def best_levels(stream: ChangeStream, queries: Queries = "mean") -> tuple[tuple[SignedSets, ...], tuple[int, ...]]:
    """The mechanism of each level, and how many of 2^32 devices it has, with the least error of some queries."""
    plan = Sao2(**_shape(stream), mechanism=stream.rule.__name__, choice="uniform")
    mechanisms = tuple(mechanism for mechanism in plan.mechanisms if isinstance(mechanism, SignedSets))
    portions = _portions(plan, queries)
    portions[portions < LEAST_PORTION] = 0  # devices do not answer so short an arc
    return mechanisms, tuple(arc_lengths(portions / portions.sum()))


def planned_stream(stream: ChangeStream, queries: Queries) -> ChangeStream:
    """The same stream with the devices on its levels that are best for some queries."""
    return stream if queries == "mean" else replace(stream, lengths=best_levels(stream, queries)[1])


def plan_of(stream: ChangeStream) -> Sao2:
    """The plan with the levels, mechanisms and shares that a stream has."""
    return _StreamPlan(**_shape(stream), mechanism=stream.rule.__name__, stream=stream)


def query_error(
    stream: ChangeStream, n: float, queries: Queries = "mean", changed: Sequence[float] | None = None
) -> float:
    """The mean squared error of the queries, if n devices enrol at the start and values change as often up as down.

    It includes that each level is reported by a part of the devices. A sum over k steps is taken as k times the mean
    over them: the returned error is of that mean, and each query counts by the square of its length.

    `queries`: the queries, as of `Sao2`. `changed`: for each level, the share of the entries of its nodes that change;
    by default all allowed changes are used.
    """
    plan, steps = stream.plan, np.arange(1.0, stream.steps + 1)
    shares = [m.sparsity / m.dimension for m in plan.mechanisms] if changed is None else changed
    ends = [mechanism.variances() for mechanism in plan.mechanisms]
    variances = [share * (held + 1) + (1 - share) * rest for share, (held, rest) in zip(shares, ends, strict=True)]
    parts = plan.portions * n
    coefficients = squares(plan.reading(np.maximum(parts, 1e-9)), plan.tree, queries)
    used = coefficients > 0
    total = float((coefficients * variances)[used] @ (1 / np.maximum(parts, 1e-9))[used])
    lengths = {"mean": np.ones(stream.steps), "prefix": steps**2, "range": (stream.steps + 1 - steps) * steps**2}
    return total / float(lengths[queries].sum())


@dataclass(frozen=True, kw_only=True)
class _StreamPlan(Sao2):
    """A plan that takes its mechanisms and the shares of its levels from a stream instead of choosing them."""

    stream: ChangeStream

    @cached_property
    def mechanisms(self) -> tuple[SignedSets, ...]:
        return self.stream.mechanisms

    @cached_property
    def portions(self) -> Floats:
        return np.array(self.stream.lengths, dtype=np.float64) / CIRCLE


def _shape(stream: ChangeStream) -> dict[str, Any]:
    return {name: getattr(stream, name) for name in ("epsilon", "dimension", "steps", "changes", "one", "fanout")}


def _portions(plan: Sao2, queries: Queries) -> Floats:
    """The share of devices on each level that has the least error: a few fixed-point iterations."""
    variances, levels = np.asarray(plan.variances), plan.tree.levels
    # Half of the way to equal shares: from a share near 0, which ranges give the top level, the iteration is slow.
    portions = (level_portions(plan.tree, plan.variances, queries=queries, pooled=False) + 1 / levels) / 2
    for _ in range(_ITERATIONS if levels > 1 else 0):
        relative = variances / np.maximum(portions, 1e-12)
        errors = squares(Pooled(plan.tree, tuple((relative / relative.min()).tolist())), plan.tree, queries) * variances
        optimal = np.sqrt(errors)
        portions = np.sqrt(portions * optimal / optimal.sum())
        portions /= portions.sum()
    return portions
