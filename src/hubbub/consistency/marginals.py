"""Tables of shares over some attributes, and the consistency of tables that share attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
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
    """Tables that have some attributes in common: their cells, and the weight of each table in the common marginal.

    `places` are the cells' positions in all tables put together, and `sums` says to which sum each belongs: that of its
    table and its values of the common attributes. Each sum of a table has `alone` cells.
    """

    places: Ints
    sums: Ints
    weights: Floats
    alone: Floats

    def agree(self, shares: Floats) -> None:
        """Change the cells, in place, such that the common marginal is the same in every table."""
        marginals = np.bincount(self.sums, shares[self.places]).reshape(len(self.weights), -1)
        change = (self.weights @ marginals - marginals) / self.alone[:, None]
        shares[self.places] += change.ravel()[self.sums]


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
        self._shapes = {view: tuple(self._sizes[column] for column in view) for view in noises}
        ends = np.cumsum([0, *map(prod, self._shapes.values())]).tolist()
        self._parts = {view: slice(*part) for view, part in zip(noises, pairwise(ends), strict=True)}
        steps = (self._sharing(common, noises) for common in intersections(list(noises)))
        self._steps = [step for step in steps if len(step.weights) > 1]

    def _sharing(self, common: Attributes, noises: Mapping[Attributes, Noise]) -> _Sharing:
        views = [view for view in noises if set(common) <= set(view)]
        cells = prod(self._sizes[column] for column in common)
        alone = [prod(self._shapes[view]) // cells for view in views]
        variances = [sum_variance(noises[view], size, 1 / cells) for view, size in zip(views, alone, strict=True)]
        precise = 1 / np.maximum(variances, 1e-300)
        places, sums = [], []
        for number, view in enumerate(views):
            held = [self._sizes[column] if column in common else 1 for column in view]
            own = np.broadcast_to(np.arange(cells).reshape(held), self._shapes[view])
            places.append(np.arange(self._parts[view].start, self._parts[view].stop))
            sums.append(number * cells + own.ravel())
        return _Sharing(
            np.concatenate(places), np.concatenate(sums), precise / precise.sum(), np.array(alone, dtype=np.float64)
        )

    def linear(self, tables: Tables) -> dict[Attributes, Floats]:
        """Tables that agree, unbiased if the input is. Each input table must sum to 1."""
        return self._apart(self._agreed(self._together(tables)))

    def positive(self, tables: Tables) -> dict[Attributes, Floats]:
        """Tables that agree and have no share below 0.

        Alternately, each table is projected onto the simplex and all are made to agree. At the end, all are mixed with
        just enough of the uniform distribution to raise the lowest cell to 0: uniform tables agree too.
        """
        shares = self._agreed(self._together(tables))
        for _ in range(ROUNDS):
            if shares.min() >= -SMALL:
                break
            for part in self._parts.values():
                shares[part] = project_simplex(shares[part])
            shares = self._agreed(shares)
        result = self._apart(shares)
        uniform = max(_uniform_part(table) for table in result.values())
        return {view: np.maximum((1 - uniform) * table + uniform / table.size, 0.0) for view, table in result.items()}

    def _together(self, tables: Tables) -> Floats:
        return np.concatenate([tables[view].ravel() for view in self._parts])

    def _apart(self, shares: Floats) -> dict[Attributes, Floats]:
        return {view: shares[part].reshape(self._shapes[view]) for view, part in self._parts.items()}

    def _agreed(self, shares: Floats) -> Floats:
        for step in self._steps:
            step.agree(shares)
        return shares


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
