"""The naive way: the budget is split over the steps, and everyone tells of every one of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.ternary import MOST_DIMENSION
from hubbub.mechanisms.ternary.exsub import ExSub
from hubbub.protocols.changes import Changes
from hubbub.protocols.sao2.reading import Reading

__all__ = ["Split"]


@dataclass(frozen=True, kw_only=True)
class Split:
    """Everyone tells of the vector of every step with epsilon/T: the error grows with the cube of the steps.

    What Sao2 is to be compared with; the parameters are its own. No tree: a step is told by itself.

    Example:
        >>> plan = Split(epsilon=1.0, dimension=1, steps=8, changes=2)
        >>> plan.mechanisms[3].epsilon
        0.125
    """

    epsilon: float
    dimension: int
    steps: int
    changes: int
    one: bool = False

    def __post_init__(self) -> None:
        if self.dimension * self.steps > MOST_DIMENSION:
            raise InvalidValue("steps", self.steps, f"at most {MOST_DIMENSION // self.dimension} at this dimension")
        _ = self.mechanism

    @cached_property
    def view(self) -> Changes:
        """A vector is a stream of one step that begins with nothing: no more entries are 1 than may have changed."""
        return Changes(1, 1, self.dimension, self.changes, self.one)

    @cached_property
    def mechanism(self) -> ExSub:
        """The same at every step."""
        share = epsilon_of(units_of(self.epsilon) // self.steps)
        return ExSub(epsilon=share, dimension=self.dimension, sparsity=self.view.sparsity)

    @property
    def mechanisms(self) -> tuple[ExSub, ...]:
        """Every step is a part of its own."""
        return (self.mechanism,) * self.steps

    @property
    def online(self) -> bool:
        """Answers come at once."""
        return True

    def clips(self, step: int) -> bool:
        """Whether more entries may be 1 than may be told of.

        Example:
            >>> Split(epsilon=1.0, dimension=4, steps=8, changes=2).clips(1)
            True
        """
        return self.view.sparsity < (1 if self.one else self.dimension)

    @property
    def views(self) -> tuple[Changes, ...]:
        """What is told of every step."""
        return (self.view,) * self.steps

    def times(self, part: int) -> range:
        """The one step that a part tells of.

        Example:
            >>> list(Split(epsilon=1.0, dimension=1, steps=8, changes=2).times(part=3))
            [4]
        """
        return range(part + 1, part + 2)

    def ending(self, step: int) -> list[tuple[int, int]]:
        """The one node of a step.

        Example:
            >>> Split(epsilon=1.0, dimension=1, steps=8, changes=2).ending(step=4)
            [(3, 1)]
        """
        return [(step - 1, 1)]

    def reading(self, n: NDArray[np.int64]) -> Reading:
        """Each step is told by itself.

        Example:
            >>> plan = Split(epsilon=1.0, dimension=1, steps=2, changes=2)
            >>> [part.tolist() for part in plan.reading(np.array([5, 5])).coefficients([1.0, 2.0], 2)]
            [[1.0], [2.0]]
        """
        return _EachStep()

    def population(self, n: NDArray[np.int64]) -> float:
        """Everyone is asked at every step.

        Example:
            >>> Split(epsilon=1.0, dimension=1, steps=2, changes=2).population(np.array([5, 4]))
            5.0
        """
        return float(n.max())


class _EachStep:
    def coefficients(self, weights: ArrayLike, now: ArrayLike) -> list[NDArray[np.float64]]:
        return [np.atleast_1d(weight) for weight in np.asarray(weights, dtype=np.float64).T]
