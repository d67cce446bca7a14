"""A marginal that nobody reported on, reconstructed by maximum entropy, with bounds from the reported marginals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Self

import numpy as np

from hubbub.consistency.contingency import Attributes, Floats
from hubbub.core.confidence import check_level
from hubbub.core.estimate import Estimate

_ONE_DEVIATION = 2 * NormalDist().cdf(1.0) - 1


@dataclass(frozen=True, eq=False)
class ReconstructedMarginal(Estimate):
    """Shares of the cells of a marginal that is reconstructed from smaller marginals (its parts) by maximum entropy.

    A cell's share is at most that of its projection onto each part. It is at least P(B1) + P(B2) - P(common attributes
    of B1 and B2) for two parts B1 and B2, and so on from part to part. The interval reaches from the lower bound to the
    smallest upper bound, each widened by its noise: it covers noise, sampling and reconstruction. `variance` is the
    square of half of the 68% interval.

    Parameters
    ----------
    upper
        For each part, the share at every cell of this marginal, and its standard error.
    lower
        The lower bound of every cell, and an upper bound on its standard error.
    parts
        The attributes of the parts.
    """

    upper: Floats = field(default_factory=lambda: np.zeros((2, 0, 0)), repr=False)
    lower: Floats = field(default_factory=lambda: np.zeros((2, 0)), repr=False)
    parts: tuple[Attributes, ...] = ()

    @classmethod
    def from_parts(
        cls,
        value: Floats,
        parts: Sequence[Attributes],
        known: Mapping[Attributes, Estimate],
        shape: Sequence[int],
        n: int,
    ) -> Self:
        """The estimate with its bounds.

        Parameters
        ----------
        value
            The shares of all cells.
        parts
            The axes of the table that each part has.
        known
            The unbiased estimates of the parts, and of the marginals of the axes that a part has in common with earlier
            parts.
        shape, n
            The shape of the table, and how many people reported.
        """

        def at_cells(part: Attributes, numbers: Floats) -> Floats:
            table = numbers.reshape([shape[axis] for axis in part])
            others = tuple(axis for axis in range(len(shape)) if axis not in part)
            return np.broadcast_to(np.expand_dims(table, others), shape).ravel()

        upper = np.array([[at_cells(part, known[part].value), at_cells(part, known[part].stderr)] for part in parts])
        least, error = upper[0]
        reached = set(parts[0])
        for row, part in enumerate(parts[1:], start=1):
            if set(part) <= reached:
                continue
            shared = tuple(axis for axis in part if axis in reached)
            reached |= set(part)
            above, above_error = (
                (at_cells(shared, known[shared].value), at_cells(shared, known[shared].stderr))
                if shared
                else (1.0, 0.0)
            )
            least, error = least + upper[row, 0] - above, error + upper[row, 1] + above_error
        lower = np.array([least, error])
        first = cls(value, np.zeros(value.size), n, "heuristic", upper=upper, lower=lower, parts=tuple(parts))
        low, high = first.interval(_ONE_DEVIATION)
        variance = ((high - low) / 2) ** 2
        return cls(value, variance, n, "heuristic", upper=upper, lower=lower, parts=tuple(parts))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Intervals that hold the truth at least with probability `level`, one cell at a time."""
        error = (1 - check_level(level)) / 2  # of each side
        reach = NormalDist().inv_cdf(1 - error / len(self.upper))  # of each of the upper bounds
        high = (self.upper[:, 0] + reach * self.upper[:, 1]).min(axis=0)
        low = self.lower[0] - NormalDist().inv_cdf(1 - error) * self.lower[1]
        return np.minimum(self.value, np.maximum(low, 0.0)), np.maximum(self.value, np.clip(high, 0.0, 1.0))
