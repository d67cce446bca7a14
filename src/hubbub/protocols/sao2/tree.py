"""The tree over time: at level h, a node for every r^h steps.

Node j of level h, counted from 1, spans the steps (j-1) r^h + 1 to j r^h. Its *residue* is the change of the value over
these steps, x_(j r^h) - x_((j-1) r^h), where x_0 = 0; devices report it when the node ends. The value at step t is a
sum of few residues: those of the nodes that the base-r digits of t name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue

MOST_STEPS = 1 << 24


@dataclass(frozen=True)
class Tree:
    """A tree of floor(log_r T) + 1 levels; level h has floor(T / r^h) nodes.

    Parameters
    ----------
    steps
        How many steps there are, T.
    fanout
        How many nodes of a level make up one node of the level above, r.
    """

    steps: int
    fanout: int = 2

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("fanout", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= MOST_STEPS:
                raise InvalidValue(name, value, f"an integer from {least} to {MOST_STEPS}")
            object.__setattr__(self, name, int(value))

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """How many nodes each level has."""
        counts = [self.steps]
        while counts[-1] >= self.fanout:
            counts.append(counts[-1] // self.fanout)
        return tuple(counts)

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return len(self.nodes)

    def span(self, level: int) -> int:
        """How many steps a node of a level spans."""
        span: int = self.fanout**level
        return span

    def ending(self, step: int) -> list[tuple[int, int]]:
        """The nodes that end with a step, as (level, node)."""
        self._check(step)
        return [(h, step // self.span(h)) for h in range(self.levels) if step % self.span(h) == 0]

    def parts(self, step: int) -> list[tuple[int, int]]:
        """The nodes whose residues sum to the value at a step, as (level, node), earliest first (Algorithm 2)."""
        self._check(step)
        nodes = []
        for level in reversed(range(self.levels)):
            last = step // self.span(level)
            # Nodes whose parent has ended too are part of the parent.
            first = 0 if level == self.levels - 1 else last // self.fanout * self.fanout
            nodes += [(level, node) for node in range(first + 1, last + 1)]
        return nodes

    def in_use(self, level: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each node of a level, the first step whose `parts` include it, and the first later step that does not."""
        node = np.arange(1, self.nodes[level] + 1)
        if level == self.levels - 1:
            end = np.full(node.size, self.steps + 1)
        else:
            end = np.minimum(-(-node // self.fanout) * self.span(level + 1), self.steps + 1)
        return node * self.span(level), end

    def _check(self, step: int) -> None:
        if isinstance(step, bool) or not isinstance(step, int | np.integer) or not 1 <= step <= self.steps:
            raise InvalidValue("step", step, f"a step from 1 to {self.steps}")
