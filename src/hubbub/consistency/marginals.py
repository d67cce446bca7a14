"""Tables of shares over some attributes, and the consistency of tables that share attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from hubbub.consistency.normalise import norm, project_simplex, shares_of
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.core.reports import Floats, Ints

Attributes = tuple[int, ...]
"""Columns of a record, in ascending order."""
MOST_CELLS = 1 << 24


def check_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """How many values each attribute has, refused where it is fewer than two."""
    if not isinstance(sizes, Sequence) or not sizes:
        raise InvalidValue("sizes", sizes, "the number of values of each attribute, at least one")
    for column, size in enumerate(sizes):
        check_integer(f"sizes[{column}]", size, 2, MOST_CELLS)
    return tuple(int(size) for size in sizes)


def check_attributes(attributes: Sequence[int], sizes: Sequence[int]) -> Attributes:
    """The attributes of a table in ascending order; refused where one is unknown or repeated."""
    named = [int(column) for column in np.asarray(attributes).tolist() if type(column) is int]
    fits = len(named) == len(attributes) and all(0 <= column < len(sizes) for column in named)
    if not named or not fits or len(set(named)) < len(named):
        raise InvalidValue("attributes", attributes, f"different columns from 0 to {len(sizes) - 1}, at least one")
    if prod(sizes[column] for column in named) > MOST_CELLS:
        raise InvalidValue("attributes", attributes, f"attributes with at most {MOST_CELLS:,} cells together")
    return tuple(sorted(named))


def check_rows(records: ArrayLike, sizes: Sequence[int]) -> Ints:
    """The records as an array, refused where a code is no value of its attribute."""
    codes = np.asarray(records)
    if codes.ndim != 2 or codes.shape[1] != len(sizes) or codes.dtype.kind not in "iu":
        raise InvalidValue("records", codes.shape, f"rows of {len(sizes)} integers")
    outside = (codes < 0) | (codes >= np.asarray(sizes))
    if outside.any():
        row, column = np.argwhere(outside)[0]
        allowed = f"integers from 0 to {sizes[column] - 1}"
        raise InvalidValue(f"records[:, {column}]", codes[row, column].item(), allowed)
    return codes.astype(np.int64)


def cell_of(records: Ints, attributes: Attributes, sizes: Sequence[int]) -> Ints:
    """The cell of each record in the table of some attributes; the last attribute runs fastest."""
    shape = tuple(sizes[column] for column in attributes)
    return np.ravel_multi_index(tuple(records[:, column] for column in attributes), shape).astype(np.int64)


def project(table: Floats, attributes: Attributes, onto: Attributes) -> Floats:
    """The table of fewer attributes, from a table with one axis an attribute."""
    summed = tuple(axis for axis, column in enumerate(attributes) if column not in onto)
    return np.asarray(table.sum(axis=summed))


def true_table(records: ArrayLike, attributes: Sequence[int], sizes: Sequence[int]) -> Floats:
    """The shares of records in each cell."""
    codes = check_rows(records, sizes)
    columns = check_attributes(attributes, sizes)
    shape = tuple(sizes[column] for column in columns)
    counts = np.bincount(cell_of(codes, columns, sizes), minlength=prod(shape))
    return (counts / max(len(codes), 1)).reshape(shape)


ROUNDS = 200
SMALL = 1e-7
"""The search ends when no share is further below 0 than this; the rest is removed by mixing with uniform tables."""
Tables = Mapping[Attributes, Floats]


def sum_variance(noise: Noise, cells: int, share: float) -> float:
    """The variance of the sum of `cells` cells that together have this share, each an equal part."""
    shares = np.full(cells, share / cells)
    both = noise.variance(shares).sum() + noise.cross_terms(shares, np.ones((1, cells)))[0]
    return float(max(both, 0.0))


@dataclass(frozen=True)
class _Sharing:
    """Attributes that several tables share, and the weight of each table in their common marginal."""

    common: Attributes
    weights: Mapping[Attributes, float]

    def agree(self, tables: dict[Attributes, Floats]) -> None:
        marginals = {view: project(tables[view], view, self.common) for view in self.weights}
        mean = np.sum([weight * marginals[view] for view, weight in self.weights.items()], axis=0)
        for view in self.weights:
            change = mean - marginals[view]
            alone = tables[view].size // change.size
            axes = tuple(axis for axis, column in enumerate(view) if column not in self.common)
            tables[view] = tables[view] + np.expand_dims(change / alone, axes)


class MarginalAgreement:
    """Makes tables agree: each shared marginal becomes the weighted mean of the tables', small sets of attributes
    first.

    The mean of T_A over the tables that contain A has the least variance where each table is weighted by 1 over the
    variance of its sums. Where all tables have as many people and their errors are independent, that is 1/L_i for L_i
    added cells (section 6.2.4). The change of a table's sum is distributed evenly over its cells. As smaller sets of
    attributes come first, and every intersection is among them, no later step undoes an earlier one.

    `noises`: the second moments of each table, by its attributes. `sizes`: how many values each attribute of a record
    has.
    """

    def __init__(self, noises: Mapping[Attributes, Noise], sizes: Sequence[int]) -> None:
        self._sizes = check_sizes(sizes)
        self._steps = []
        for common in intersections(list(noises)):
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
        """Tables that agree, unbiased if the input is. Each input table must sum to 1."""
        result = dict(tables)
        for step in self._steps:
            step.agree(result)
        return result

    def positive(self, tables: Tables) -> dict[Attributes, Floats]:
        """Tables that agree and have no share below 0.

        Alternately, each table is projected onto the simplex and all are made to agree. At the end, all are mixed with
        just enough of the uniform distribution to raise the lowest cell to 0: uniform tables agree too.
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
    """Marginals that were estimated independently, made to agree, with shares of at least 0 that sum to 1.

    Variance and noise stay those of each table's own estimate, which becomes `centre`: intervals still cover the truth,
    and are extended to include the new value.

    `estimates`: the shares of the cells of each table by its attributes, the last attribute running fastest. `sizes`:
    how many values each attribute of a record has.

    References
    ----------
    T. Wang, 2021, section 6.2.4.
    """
    sizes = check_sizes(sizes)
    normed: dict[Attributes, Estimate] = {}
    for view, estimate in estimates.items():
        shape = tuple(sizes[column] for column in check_attributes(view, sizes))
        if shares_of(estimate).size != prod(shape) or tuple(view) != tuple(sorted(view)):
            raise InvalidValue(
                f"estimates[{view}]", len(estimate), f"{prod(shape)} shares, attributes in ascending order"
            )
        if estimate.noise is None:
            raise InvalidValue(f"estimates[{view}].noise", None, "the noise of the mechanism")
        normed[tuple(view)] = norm(estimate)
    if not normed:
        raise InvalidValue("estimates", estimates, "at least one marginal")
    noises = {view: estimate.noise for view, estimate in normed.items() if estimate.noise is not None}
    tables = {view: estimate.value.reshape([sizes[column] for column in view]) for view, estimate in normed.items()}
    agreed = MarginalAgreement(noises, sizes).positive(tables)
    return {
        view: replace(estimate, value=agreed[view].ravel(), bias="consistent", centre=estimate.value)
        for view, estimate in normed.items()
    }


def intersections(views: Sequence[Attributes]) -> list[Attributes]:
    """All sets of attributes that several views share, closed under intersection, small ones first."""
    closed: set[frozenset[int]] = set()
    new = {frozenset(first) & frozenset(second) for first, second in combinations(views, 2)}
    while new:
        closed |= new
        new = {first & second for first in new for second in closed} - closed
    return sorted((tuple(sorted(common)) for common in closed if common), key=lambda common: (len(common), common))


def _uniform_part(table: Floats) -> float:
    """The part of the uniform distribution that raises the lowest cell of a table to 0."""
    lowest = float(table.min())
    return -lowest / (1 / table.size - lowest) if lowest < 0 else 0.0
