"""The result of a search for heavy hitters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class FoundValues(NamedTuple):
    """Values in falling order of their estimated shares, and the shares."""

    values: list[int]
    shares: NDArray[np.float64]

    def above(self, threshold: float | None) -> FoundValues:
        """The values whose estimated share is at least the threshold; all values if it is None.

        Example:
            >>> FoundValues([7, 9], np.array([0.3, 0.1])).above(0.2).values
            [7]
        """
        if threshold is None:
            return self
        number = int((self.shares >= threshold).sum())
        return FoundValues(self.values[:number], self.shares[:number])


def best_values(values: Sequence[int] | NDArray[Any], shares: NDArray[np.float64], k: int) -> FoundValues:
    """The k values of the largest estimated shares.

    Example:
        >>> best_values([7, 9, 4], np.array([0.1, 0.5, 0.2]), 2).values
        [9, 4]
    """
    order = np.argsort(-shares, kind="stable")[:k]
    return FoundValues([int(values[place]) for place in order], shares[order])
