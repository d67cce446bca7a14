"""The plan of a SaO2 stream: a tree, who tells of which level of it, and how."""

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

    Every device tells of one level of a tree over time, which its secret place on the circle decides. What it tells,
    over all steps together, is one report of a ternary mechanism on the changes that its level sees, and spends
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
        How many changes of entries a device may tell of; a device with more holds its value constant then.
    one
        Whether the value is one of `dimension` categories.
    fanout
        How many nodes of a level of the tree make one of the next.
    mechanism
        The ternary mechanism, by name: NetSub, whose error is the smallest, or the paper's ExSub, or another. Those
        that must see whole vectors (`whole_only`) answer when the stream has ended, all others as it goes.
    queries
        What is asked most: the values of steps ("mean"), sums from the first step on ("prefix"), sums over any steps
        ("range"). The levels are given the parts of the population that serve it best; all three are answered.
    choice
        "optimum", "uniform" or "paper": see `level_portions`.
    pooled
        Whether answers use all that was told (`Pooled`), or what the paper's Algorithm 2 does (`Digits`).

    Example:
        >>> plan = Sao2(epsilon=1.0, dimension=1, steps=8, changes=2)
        >>> [mechanism.dimension for mechanism in plan.mechanisms], plan.portions.round(2).tolist()
        ([8, 4, 2, 1], [0.54, 0.26, 0.17, 0.03])

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
            known = sorted(name for name, mechanism in MECHANISMS.items() if issubclass(mechanism, TernaryMechanism))
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
        """What devices of each level tell."""
        return tuple(
            Changes(self.tree.span(level), self.steps, self.dimension, self.changes, self.one)
            for level in range(self.tree.levels)
        )

    @cached_property
    def mechanisms(self) -> tuple[TernaryMechanism, ...]:
        """How devices of each level say it."""
        kind = MECHANISMS[self.mechanism]
        made = [kind(epsilon=self._told_with, dimension=v.entries, sparsity=v.sparsity) for v in self.views]  # type: ignore[call-arg]
        return tuple(mechanism for mechanism in made if isinstance(mechanism, TernaryMechanism))

    @property
    def _told_with(self) -> float:
        # As a float 0.1 is more than a tenth: a report told with it costs a unit more than its device may spend.
        fine = isinstance(self.epsilon, float) and 1 / UNITS_PER_EPSILON <= self.epsilon < math.inf
        return epsilon_of(units_of(self.epsilon)) if fine else self.epsilon  # what else is given, mechanisms refuse

    @cached_property
    def variances(self) -> tuple[float, ...]:
        """The variance that one report gives an entry of a residue of each level, of a device with all its changes."""
        return tuple(mechanism.mse() / mechanism.dimension for mechanism in self.mechanisms)

    @cached_property
    def portions(self) -> NDArray[np.float64]:
        """The part of the population that tells of each level."""
        return level_portions(self.tree, self.variances, queries=self.queries, choice=self.choice, pooled=self.pooled)

    @property
    def online(self) -> bool:
        """Whether devices answer as the stream goes, or when it has ended."""
        return not self.mechanisms[0].whole_only

    def clips(self, step: int) -> bool:
        """Whether a value may have changed more often by a step than its device may tell, at any level.

        Example:
            >>> plan = Sao2(epsilon=1.0, dimension=1, steps=8, changes=2)
            >>> [plan.clips(step) for step in (1, 2, 3, 8)]
            [False, False, True, True]
        """
        return any(_most_changes(view, step // view.span) > view.sparsity for view in self.views)

    def times(self, level: int) -> range:
        """The steps at which the nodes of a level end.

        Example:
            >>> list(Sao2(epsilon=1.0, dimension=1, steps=9, changes=2).times(level=2))
            [4, 8]
        """
        return range(self.tree.span(level), self.steps + 1, self.tree.span(level))

    def ending(self, step: int) -> list[tuple[int, int]]:
        """The nodes that are told of at a step, as (level, node): all of them at the end, where they cannot be before.

        Example:
            >>> Sao2(epsilon=1.0, dimension=1, steps=8, changes=2).ending(step=4)
            [(0, 4), (1, 2), (2, 1)]
        """
        if self.online:
            return self.tree.ending(step)
        nodes = self.tree.nodes if step == self.steps else ()
        return [(level, node) for level, count in enumerate(nodes) for node in range(1, count + 1)]

    def reading(self, n: NDArray[np.int64]) -> Reading:
        """How answers are read where so many devices told of each level.

        Example:
            >>> Sao2(epsilon=1.0, dimension=1, steps=2, changes=2).reading(np.array([5, 0])).trust()
            [1.0, 0.0]
        """
        if not self.pooled:
            return Digits(self.tree)
        with np.errstate(divide="ignore"):
            return Pooled(self.tree, tuple((np.asarray(self.variances) / n).tolist()))

    def population(self, n: NDArray[np.int64]) -> float:
        """How many devices there are where so many told of each level, and the others are still to be heard.

        Example:
            >>> plan = Sao2(epsilon=1.0, dimension=1, steps=2, changes=2, choice="uniform")
            >>> plan.population(np.array([5, 0]))
            10.0
        """
        heard = float(self.portions[n > 0].sum())
        return float(n.sum()) / heard if heard else 0.0


def _most_changes(view: Changes, nodes: int) -> int:
    """How many changes of entries a value can go through by so many nodes: a category leaves one for another."""
    entries = view.dimension * nodes
    return min(2 * nodes - 1, entries) if view.one else entries
