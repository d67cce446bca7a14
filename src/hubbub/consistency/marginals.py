"""Overlapping marginals that agree: what two tables say of the attributes they share is made equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from hubbub.consistency.contingency import Attributes, Floats, check_attributes, check_sizes, project
from hubbub.consistency.normalise import norm
from hubbub.consistency.shares import shares_of
from hubbub.consistency.simplex import project_simplex
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise

ROUNDS = 200
SMALL = 1e-7
"""A share that is less than this below 0 ends the search; what is left of it is mixed away."""
Tables = Mapping[Attributes, Floats]


def sum_variance(noise: Noise, cells: int, share: float) -> float:
    """The variance of a sum of so many cells that hold this share of people together, evenly.

    Example:
        >>> sum_variance(Noise(floor=1.0, slope=0.5), 4, 0.5)
        4.25
        >>> sum_variance(Noise(floor=1.0, slope=0.0, pair_floor=-0.25), 5, 1.0)
        0.0
    """
    shares = np.full(cells, share / cells)
    both = noise.variance(shares).sum() + noise.cross_terms(shares, np.ones((1, cells)))[0]
    return float(max(both, 0.0))


@dataclass(frozen=True)
class _Sharing:
    """Attributes that several tables have, and with what weight each table's word on them counts."""

    common: Attributes
    weights: Mapping[Attributes, float]

    def agree(self, tables: dict[Attributes, Floats]) -> None:
        said = {view: project(tables[view], view, self.common) for view in self.weights}
        mean = np.sum([weight * said[view] for view, weight in self.weights.items()], axis=0)
        for view in self.weights:
            change = mean - said[view]
            alone = tables[view].size // change.size
            axes = tuple(axis for axis, column in enumerate(view) if column not in self.common)
            tables[view] = tables[view] + np.expand_dims(change / alone, axes)


class MarginalAgreement:
    """How tables of some attributes are made to agree: the weighted means over what they share, few attributes first.

    The mean of T_A over the tables that contain A has the least variance where each table is weighted by 1 over the
    variance of its sums. Where all tables have as many people and their errors are independent, that is 1/L_i for L_i
    added cells (section 6.2.4). What a table's sum is moved by is spread evenly over its cells. As smaller sets of
    attributes come first, and every intersection is among them, no later step undoes an earlier one.

    Parameters
    ----------
    noises
        The second moments of each table, by its attributes.
    sizes
        How many values each attribute of a record has.

    Example:
        >>> agreement = MarginalAgreement({(0, 1): Noise(1.0, 0.0), (1, 2): Noise(3.0, 0.0)}, (2, 2, 2))
        >>> tables = {(0, 1): np.full((2, 2), 0.25), (1, 2): np.array([[0.4, 0.0], [0.6, 0.0]])}
        >>> agreed = agreement.linear(tables)
        >>> agreed[0, 1].sum(axis=0).tolist(), agreed[1, 2].sum(axis=1).tolist()
        ([0.475, 0.525], [0.475, 0.525])
    """

    def __init__(self, noises: Mapping[Attributes, Noise], sizes: Sequence[int]) -> None:
        self._sizes = check_sizes(sizes)
        self._steps = []
        for common in _intersections(list(noises)):
            precise = {}
            for view, noise in noises.items():
                if set(common) <= set(view):
                    cells = prod(self._sizes[column] for column in common)
                    alone = prod(self._sizes[column] for column in view) // cells
                    precise[view] = 1 / max(sum_variance(noise, alone, 1 / cells), 1e-300)
            if len(precise) > 1:
                total = sum(precise.values())
                weights = {view: precision / total for view, precision in precise.items()}
                self._steps.append(_Sharing(common, weights))

    def linear(self, tables: Tables) -> dict[Attributes, Floats]:
        """Tables that agree; unbiased where the given ones are. Each must sum to 1."""
        result = dict(tables)
        for step in self._steps:
            step.agree(result)
        return result

    def positive(self, tables: Tables) -> dict[Attributes, Floats]:
        """Tables that agree and have no share below 0.

        By turns each table is moved to the nearest without shares below 0, and all are made to agree. At the end, all
        are mixed with as little of the uniform distribution as lifts the lowest cell to 0: the uniform tables agree.

        Example:
            >>> agreement = MarginalAgreement({(0, 1): Noise(1.0, 0.0), (1, 2): Noise(1.0, 0.0)}, (2, 2, 2))
            >>> tables = {(0, 1): np.array([[0.7, 0.5], [-0.2, 0.0]]), (1, 2): np.array([[0.4, 0.2], [0.1, 0.3]])}
            >>> agreed = agreement.positive(tables)
            >>> bool(min(table.min() for table in agreed.values()) >= 0)
            True
            >>> bool(abs(agreed[0, 1].sum(axis=0) - agreed[1, 2].sum(axis=1)).max() < 1e-9)
            True
        """
        result = self.linear(tables)
        for _ in range(ROUNDS):
            if min(table.min() for table in result.values()) >= -SMALL:
                break
            result = self.linear(
                {view: project_simplex(table.ravel()).reshape(table.shape) for view, table in result.items()}
            )
        part = max(_uniform_part(table) for table in result.values())
        return {view: np.maximum((1 - part) * table + part / table.size, 0.0) for view, table in result.items()}


def consistent_marginals(estimates: Mapping[Attributes, Estimate], sizes: Sequence[int]) -> dict[Attributes, Estimate]:
    """Marginals that were each estimated for themselves, made to agree, with shares of at least 0 that sum to 1.

    The variance and noise stay those of each table's own reports, about its own estimate, which is `centre`: intervals
    hold the truth, and are drawn out to hold the value.

    Parameters
    ----------
    estimates
        The shares of the cells of each table by its attributes, the last attribute running fastest.
    sizes
        How many values each attribute of a record has.

    Example:
        >>> noise = Noise(floor=1e-4, slope=0.0)
        >>> first = Estimate([0.5, 0.3, 0.1, 0.1], [1e-4] * 4, 1000, noise=noise)
        >>> other = Estimate([0.4, 0.0, 0.3, 0.3], [1e-4] * 4, 1000, noise=noise)
        >>> agreed = consistent_marginals({(0, 1): first, (1, 2): other}, (2, 2, 2))
        >>> agreed[0, 1].value.round(3).tolist(), agreed[1, 2].value.round(3).tolist()
        ([0.45, 0.35, 0.05, 0.15], [0.45, 0.05, 0.25, 0.25])

    References
    ----------
    Dissertation, section 6.2.4.
    """
    known = check_sizes(sizes)
    normed: dict[Attributes, Estimate] = {}
    for view, estimate in estimates.items():
        shape = tuple(known[column] for column in check_attributes(view, known))
        if shares_of(estimate).size != prod(shape) or tuple(view) != tuple(sorted(view)):
            raise InvalidValue(f"estimates[{view}]", len(estimate), f"{prod(shape)} shares, attributes in rising order")
        if estimate.noise is None:
            raise InvalidValue(f"estimates[{view}].noise", None, "the noise of the mechanism")
        normed[tuple(view)] = norm(estimate)
    if not normed:
        raise InvalidValue("estimates", estimates, "at least one marginal")
    noises = {view: estimate.noise for view, estimate in normed.items() if estimate.noise is not None}
    tables = {view: e.value.reshape([known[column] for column in view]) for view, e in normed.items()}
    agreed = MarginalAgreement(noises, known).positive(tables)
    return {
        view: replace(estimate, value=agreed[view].ravel(), bias="consistent", centre=estimate.value)
        for view, estimate in normed.items()
    }


def _intersections(views: Sequence[Attributes]) -> list[Attributes]:
    """All sets of attributes that several views share, closed under intersection, small ones first."""
    found: set[frozenset[int]] = set()
    new = {frozenset(one) & frozenset(other) for place, one in enumerate(views) for other in views[:place]}
    while new:
        found |= new
        new = {one & other for one in new for other in found} - found
    return sorted((tuple(sorted(common)) for common in found if common), key=lambda common: (len(common), common))


def _uniform_part(table: Floats) -> float:
    """How much of the uniform distribution lifts the lowest cell of a table to 0."""
    lowest = float(table.min())
    return -lowest / (1 / table.size - lowest) if lowest < 0 else 0.0
