"""A stream of sets: each simulated device has a set of items, the same at every step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.item_sets import ItemSets
from hubbub.simulate.devices import Stream


class SetStream(Stream):
    """The set of each person, the same at every step.

    Parameters
    ----------
    people
        The sets; similar people must not be side by side.

    Example:
        >>> stream = SetStream(ItemSets([0, 2, 2, 3], [4, 0, 4], domain=5))
        >>> stream.n, stream.values(1, 0, 2).sizes.tolist(), stream.truth(1).round(2).tolist()
        (3, [2, 0], [0.33, 0.0, 0.0, 0.0, 0.67])
    """

    steps = None

    def __init__(self, people: ItemSets) -> None:
        self.people, self.n = people, len(people)

    def values(self, step: int, start: int, stop: int) -> Any:
        return self.people[slice(start, stop)]

    def truth(self, step: int) -> NDArray[np.float64]:
        return self.people.support() / self.n
