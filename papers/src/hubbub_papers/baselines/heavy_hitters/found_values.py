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
        """The values whose estimated share is at least the threshold; all values if it is None."""
        if threshold is None:
            return self
        number = int((self.shares >= threshold).sum())
        return FoundValues(self.values[:number], self.shares[:number])


def best_values(values: Sequence[int] | NDArray[Any], shares: NDArray[np.float64], k: int) -> FoundValues:
    """The k values of the largest estimated shares."""
    order = np.argsort(-shares, kind="stable")[:k]
    return FoundValues([int(values[place]) for place in order], shares[order])
