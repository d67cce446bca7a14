"""The plan of a SaO2 stream: a tree over time, the share of devices that reports on each level, and the mechanisms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON, epsilon_of, units_of
from hubbub.core.ternary import MOST_DIMENSION
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.protocols.changes import Changes
from hubbub.protocols.sao2.portions import Choice, Queries, level_portions
from hubbub.protocols.sao2.reading import Digits, Pooled, Reading
from hubbub.protocols.sao2.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Sao2:
    """Means and sums over time of people's 0/1 vectors, in real time, for one epsilon over the whole stream.

    Every device reports on one level of a tree over time, which its secret place on the circle decides. Its reports of
    all steps together are one report of a ternary mechanism on the changes from node to node of that level, and spend
    epsilon once. The mean squared error grows with the number of changes, not with the number of steps.

    Parameters
    ----------
    epsilon
        What a device may spend, over all steps together.
    dimension
        How many entries the vectors have: 1 for on and off, the number of items of sets, the number of categories.
    steps
        How many steps there are.
    changes
        How many changes of entries a device may report; after that it treats its value as constant.
    one
        Whether the value is one of `dimension` categories.
    fanout
        How many nodes of a level make up one node of the level above.
    mechanism
        The name of the ternary mechanism: NetSub, which has the smallest error, the paper's ExSub, or another. Devices
        report at the end of the stream if the mechanism must see whole vectors (`whole_only`), otherwise as it goes.
    queries
        The estimates whose error is minimised by the choice of the levels' shares: the values of steps ("mean"), sums
        from the first step on ("prefix"), or sums over any steps ("range"). All three can be estimated in any case.
    choice
        "optimum", "uniform" or "paper": see `level_portions`.
    pooled
        Whether estimates use all reports (`Pooled`), or only those that the paper's Algorithm 2 uses (`Digits`).

    References
    ----------
    sao2-exsub, section 4. Where answers are `pooled`, `choice` is "optimum" and the mechanism is NetSub, ours.
    """

    epsilon: float
    dimension: int
    steps: int
    changes: int
    one: bool = False
    fanout: int = 2
    mechanism: str = "NetSub"
    queries: Queries = "mean"
    choice: Choice = "optimum"
    pooled: bool = True

    def __post_init__(self) -> None:
        kind = MECHANISMS.get(self.mechanism)
        if kind is None or not issubclass(kind, TernaryMechanism):
            known = sorted(
                name for name, mechanism in MECHANISMS.usable().items() if issubclass(mechanism, TernaryMechanism)
            )
            raise InvalidValue("mechanism", self.mechanism, f"one of {', '.join(known)}")
        _ = self.tree
        if isinstance(self.dimension, int) and self.dimension * self.steps > MOST_DIMENSION:
            raise InvalidValue("steps", self.steps, f"at most {MOST_DIMENSION // self.dimension} at this dimension")
        _ = self.portions

    @cached_property
    def tree(self) -> Tree:
        """The tree over time."""
        return Tree(self.steps, self.fanout)

    @cached_property
    def views(self) -> tuple[Changes, ...]:
        """The view of each level."""
        return tuple(
            Changes(self.tree.span(level), self.steps, self.dimension, self.changes, self.one)
            for level in range(self.tree.levels)
        )

    @cached_property
    def mechanisms(self) -> tuple[TernaryMechanism, ...]:
        """The mechanism of each level."""
        kind, epsilon = MECHANISMS[self.mechanism], self._report_epsilon
        mechanisms = [kind(epsilon=epsilon, dimension=v.entries, sparsity=v.sparsity) for v in self.views]  # type: ignore[call-arg]
        return tuple(mechanism for mechanism in mechanisms if isinstance(mechanism, TernaryMechanism))

    @property
    def _report_epsilon(self) -> float:
        """The epsilon rounded down to whole units: the float 0.1 is more than a tenth, and would cost a unit more."""
        valid = isinstance(self.epsilon, float) and 1 / UNITS_PER_EPSILON <= self.epsilon < math.inf
        return epsilon_of(units_of(self.epsilon)) if valid else self.epsilon  # mechanisms refuse an invalid one

    @cached_property
    def variances(self) -> tuple[float, ...]:
        """For each level, the variance of a residue's entry from one report of a device that has all its changes."""
        return tuple(mechanism.mse() / mechanism.dimension for mechanism in self.mechanisms)

    @cached_property
    def portions(self) -> NDArray[np.float64]:
        """The share of the population that reports on each level."""
        return level_portions(self.tree, self.variances, queries=self.queries, choice=self.choice, pooled=self.pooled)

    @property
    def online(self) -> bool:
        """Whether devices report as the stream goes, or only when it has ended."""
        return not self.mechanisms[0].whole_only

    def clips(self, step: int) -> bool:
        """Whether a value can have changed more often by this step than a device may report, at any level."""
        return any(_most_changes(view, step // view.span) > view.sparsity for view in self.views)

    def times(self, level: int) -> range:
        """The steps at which the nodes of a level end."""
        return range(self.tree.span(level), self.steps + 1, self.tree.span(level))

    def ending(self, step: int) -> list[tuple[int, int]]:
        """The nodes that devices report at a step, as (level, node); all nodes at the last step if not `online`."""
        if self.online:
            return self.tree.ending(step)
        nodes = self.tree.nodes if step == self.steps else ()
        return [(level, node) for level, count in enumerate(nodes) for node in range(1, count + 1)]

    def reading(self, n: NDArray[np.int64]) -> Reading:
        """The way to combine residues into estimates, if n devices report on each level."""
        if not self.pooled:
            return Digits(self.tree)
        with np.errstate(divide="ignore"):
            return Pooled(self.tree, tuple((np.asarray(self.variances) / n).tolist()))

    def population(self, n: NDArray[np.int64]) -> float:
        """The estimated number of devices, if n have reported on each level, and levels with n = 0 are still to come."""
        share = float(self.portions[n > 0].sum())
        return float(n.sum()) / share if share else 0.0


def _most_changes(view: Changes, nodes: int) -> int:
    """The most changes of entries within a number of nodes; each change of a category changes two entries."""
    entries = view.dimension * nodes
    return min(2 * nodes - 1, entries) if view.one else entries
