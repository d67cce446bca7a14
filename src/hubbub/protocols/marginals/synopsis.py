"""Consistent marginals, from which any other marginal is computed or reconstructed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from statistics import NormalDist
from typing import Self

import numpy as np

from hubbub.consistency.marginals import (
    Attributes,
    check_attributes,
    check_sizes,
    consistent_marginals,
    project,
    sum_variance,
)
from hubbub.consistency.normalise import norm
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import check_level
from hubbub.core.reports import Floats

ROUNDS = 1000
SETTLED = 1e-10


def maximum_entropy(marginals: Mapping[Attributes, Floats], shape: Sequence[int]) -> Floats:
    """The table of maximum entropy that has the given marginals, by iterative proportional fitting.

    The table begins as the uniform distribution and is multiplied to match each marginal in turn. If the marginals are
    consistent with each other, this converges to the maximum-entropy table.

    `marginals`: shares of at least 0, by the axes of the table; each attribute is an axis.
    """
    axes = tuple(range(len(shape)))
    table = np.full(tuple(shape), 1.0 / np.prod(shape))
    for _ in range(ROUNDS):
        before = table
        for attributes, target in marginals.items():
            present = project(table, axes, attributes)
            factor = np.divide(target, present, out=np.zeros_like(present), where=present > 0)
            table = table * np.expand_dims(factor, tuple(axis for axis in axes if axis not in attributes))
        if len(marginals) < 2 or float(np.abs(table - before).max()) < SETTLED:
            break
    return table


_ONE_DEVIATION = 2 * NormalDist().cdf(1.0) - 1


@dataclass(frozen=True, eq=False, repr=False)
class ReconstructedMarginal(Estimate):
    """Shares of the cells of a marginal that is reconstructed from smaller marginals (its parts) by maximum entropy.

    A cell's share is at most that of its projection onto each part. It is at least P(B1) + P(B2) - P(common attributes
    of B1 and B2) for two parts B1 and B2, and so on from part to part. The interval reaches from the lower bound to the
    smallest upper bound, each widened by its noise: it covers noise, sampling and reconstruction. `variance` is the
    square of half of the 68% interval.

    `upper`: for each part, the share at every cell of this marginal, and its standard error. `lower`: the lower bound
    of every cell, and an upper bound on its standard error.
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

        `known`: the unbiased estimates of the parts, and of the marginals of the axes that a part has in common with
        earlier parts. `shape`, `n`: the shape of the table, and how many people reported.
        """

        def at_cells(part: Attributes, numbers: Floats) -> Floats:
            table = numbers.reshape([shape[axis] for axis in part])
            other_axes = tuple(axis for axis in range(len(shape)) if axis not in part)
            return np.broadcast_to(np.expand_dims(table, other_axes), shape).ravel()

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


MOST_RECONSTRUCTED = 1 << 20


class Synopsis:
    """The joint distribution of all attributes, as far as some marginals determine it.

    `estimates`: by the attributes of each marginal, the unbiased estimate of the shares of its cells, with its noise;
    the last attribute varies fastest. Variances include noise and sampling.
    """

    def __init__(self, estimates: Mapping[Attributes, Estimate], sizes: Sequence[int]) -> None:
        self.sizes = check_sizes(sizes)
        self.consistent = consistent_marginals(estimates, self.sizes)
        """The consistent marginals, by their attributes."""
        self._unbiased = {view: norm(estimate) for view, estimate in estimates.items()}
        self.n = sum(estimate.n for estimate in estimates.values())

    def covers(self, attributes: Sequence[int]) -> bool:
        """Whether one of the marginals has all these attributes, so that no reconstruction is needed."""
        return any(set(attributes) <= set(view) for view in self.consistent)

    def marginal(self, attributes: Sequence[int]) -> Estimate:
        """The shares of the cells of a marginal, with its attributes in ascending order; the last varies fastest.

        If people reported on a marginal with all the attributes, `value` is consistent with the other marginals, and
        intervals are those of the unbiased mean of all such marginals: they cover noise and sampling. Otherwise the
        result is a `ReconstructedMarginal`.
        """
        wanted = check_attributes(attributes, self.sizes)
        return self._covered(wanted) if self.covers(wanted) else self._reconstructed(wanted)

    def table(self, attributes: Sequence[int]) -> Floats:
        """The same shares without their error, as a table with an axis for each attribute, in the given order."""
        return self._values(check_attributes(attributes, self.sizes)).transpose(
            [sorted(attributes).index(column) for column in attributes]
        )

    def _values(self, wanted: Attributes) -> Floats:
        for view, estimate in self.consistent.items():
            if set(wanted) <= set(view):
                return project(estimate.value.reshape(self._shape(view)), view, wanted)
        shape = self._shape(wanted)
        if prod(shape) > MOST_RECONSTRUCTED:
            raise InvalidValue("attributes", wanted, f"attributes with at most {MOST_RECONSTRUCTED:,} cells together")
        parts = {_places(part, wanted): self._values(part) for part in self._parts(wanted)}
        return maximum_entropy(parts, shape)

    def _covered(self, wanted: Attributes) -> Estimate:
        value = self._values(wanted).ravel()
        direct = self.direct(wanted)
        return Estimate(value, direct.variance, direct.n, "consistent", centre=direct.value)

    def direct(self, wanted: Attributes, sets: Floats | None = None) -> Estimate:
        """The unbiased mean over all marginals with these attributes, by weights that do not depend on reports.

        `sets`: weights of the cells of their marginal, a row for each sum that is estimated; each cell unless given.
        """
        cells = prod(self._shape(wanted))
        sums, weights = [], []
        for view, estimate in self._unbiased.items():
            if set(wanted) <= set(view):
                matrix = _summing_matrix(self._shape(view), view, wanted)
                sums.append(estimate.linear(matrix if sets is None else sets @ matrix))
                assert estimate.noise is not None
                weights.append(1 / max(sum_variance(estimate.noise, len(estimate) // cells, 1 / cells), 1e-300))
        weighted = list(zip(np.array(weights) / np.sum(weights), sums, strict=True))
        value = np.sum([weight * estimate.value for weight, estimate in weighted], axis=0)
        variance = np.sum([weight**2 * estimate.variance for weight, estimate in weighted], axis=0)
        return Estimate(value, variance, sum(estimate.n for estimate in sums))

    def _reconstructed(self, wanted: Attributes) -> ReconstructedMarginal:
        value = self._values(wanted).ravel()
        parts = _chained(self._parts(wanted))
        known = {_places(part, wanted): self.direct(part) for part in parts}
        reached = set(parts[0])
        for part in parts[1:]:
            shared = tuple(column for column in part if column in reached)
            if shared:
                known.setdefault(_places(shared, wanted), self.direct(shared))
            reached |= set(part)
        places = [_places(part, wanted) for part in parts]
        return ReconstructedMarginal.from_parts(value, places, known, self._shape(wanted), self.n)

    def _parts(self, wanted: Attributes) -> list[Attributes]:
        """The largest subsets of the wanted attributes that are in one marginal."""
        subsets = {tuple(column for column in view if column in wanted) for view in self.consistent} - {()}
        return sorted(part for part in subsets if not any(set(part) < set(other) for other in subsets))

    def _shape(self, attributes: Attributes) -> tuple[int, ...]:
        return tuple(self.sizes[column] for column in attributes)


def _places(part: Attributes, wanted: Attributes) -> Attributes:
    return tuple(wanted.index(column) for column in part)


def _chained(parts: list[Attributes]) -> list[Attributes]:
    """The parts in an order in which each shares as many attributes as possible with the earlier parts."""
    left = list(parts)
    chain = [left.pop(0)]
    while left:
        before = set().union(*chain)
        chain.append(max(left, key=lambda part: len(before & set(part))))
        left.remove(chain[-1])
    return chain


def _summing_matrix(shape: tuple[int, ...], view: Attributes, wanted: Attributes) -> Floats:
    """The 0-1 matrix that sums a table over the attributes that are not wanted: a row for each cell of the sums."""
    codes = np.unravel_index(np.arange(prod(shape)), shape)
    axes = [axis for axis, column in enumerate(view) if column in wanted]
    cells = np.ravel_multi_index([codes[axis] for axis in axes], [shape[axis] for axis in axes])
    rows = np.zeros((prod(shape[axis] for axis in axes), prod(shape)))
    rows[cells, np.arange(prod(shape))] = 1.0
    return rows
