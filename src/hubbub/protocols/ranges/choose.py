"""Choosing a mechanism for range queries, from the expected queries and the number of people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hubbub.core.errors import InvalidValue
from hubbub.protocols.ranges.adaptive import AdaptiveHierarchy
from hubbub.protocols.ranges.adaptive_forecast import adaptive_error
from hubbub.protocols.ranges.cell_sums import cells_of
from hubbub.protocols.ranges.dimension import Dimension
from hubbub.protocols.ranges.forecast import expected_stderr
from hubbub.protocols.ranges.grid_forecast import grid_error
from hubbub.protocols.ranges.grids import HDG
from hubbub.protocols.ranges.hierarchy import HIO, MG, IntervalMechanism
from hubbub.protocols.ranges.query import RangeQuery
from hubbub.protocols.ranges.split import SC

MOST_COUNTED = 1 << 22
"""Least squares counts every cell of every level: with more cells than this it is not offered."""


@dataclass(frozen=True)
class RangeChoice:
    """A mechanism, how it answers, and its expected error.

    Parameters
    ----------
    mechanism
        How people report.
    consistent
        Whether answers are by least squares over all levels.
    stderr
        The root of the mean squared error of the queries.
    unbiased
        Whether answers rest on the reports alone. Otherwise they assume that people are spread evenly inside cells, and
        the error includes a guess of what that costs: with grids, the unevenness that their authors found; with an
        adaptive hierarchy, that the people of an interval are all at one of its values.
    """

    mechanism: IntervalMechanism | AdaptiveHierarchy | SC | HDG
    consistent: bool
    stderr: float
    unbiased: bool

    @property
    def name(self) -> str:
        """The name of the mechanism, and how it answers."""
        return type(self.mechanism).__name__ + (", consistent" if self.consistent else "")


def choose_ranges(
    *,
    epsilon: float,
    dimensions: Sequence[Dimension],
    queries: Sequence[RangeQuery],
    n: int,
    mean_square: float = 1.0,
    unbiased: bool = False,
) -> list[RangeChoice]:
    """The mechanisms that can be used, smallest expected error first.

    Parameters
    ----------
    epsilon, dimensions
        What a person may spend, and the private dimensions.
    queries
        Examples of the queries that will be asked, at least one of each kind.
    n
        How many people are expected.
    mean_square
        The mean square of the measure that is added up; 1 for counts.
    unbiased
        Whether only unbiased answers are acceptable.
    """
    if not queries:
        raise InvalidValue("queries", queries, "at least one")
    for query in queries:
        query.check(dimensions)
    choices = []
    for mechanism, consistent, error in _candidates(epsilon, tuple(dimensions), n, mean_square, unbiased):
        mean = sum(error(query) ** 2 for query in queries) / len(queries)
        is_unbiased = not isinstance(mechanism, HDG | AdaptiveHierarchy)
        choices.append(RangeChoice(mechanism, consistent, math.sqrt(mean), is_unbiased))
    return sorted(choices, key=lambda choice: choice.stderr)


_Candidate = tuple[IntervalMechanism | AdaptiveHierarchy | SC | HDG, bool, Callable[[RangeQuery], float]]


def _candidates(
    epsilon: float, dimensions: tuple[Dimension, ...], n: int, mean_square: float, unbiased: bool
) -> Iterator[_Candidate]:
    """The mechanisms that these dimensions allow; for each, whether it is `consistent`, and the error of a query."""
    split = SC(epsilon, dimensions)
    yield split, False, lambda query: split.expected_stderr(query, n, mean_square=mean_square)
    for kind in (HIO, MG):
        if kind is HIO and math.prod(dimension.levels for dimension in dimensions) > n:
            continue  # nobody would report on some of the levels
        try:
            mechanism = kind(epsilon, dimensions)
        except InvalidValue:  # too many levels or cells
            continue
        cells = sum(cells_of(mechanism.dimensions, level) for level in mechanism.levels)
        for consistent in (False, True) if kind is HIO else (False,):
            if cells <= MOST_COUNTED or (kind is HIO and not consistent):
                yield mechanism, consistent, _stderr(mechanism, n, mean_square, consistent)
    if unbiased:
        return
    grids = HDG(epsilon, dimensions, n)
    yield grids, False, lambda query: grid_error(grids, query) * n * math.sqrt(mean_square)
    if len(dimensions) == 1 and dimensions[0].levels > 2:
        adaptive = AdaptiveHierarchy(epsilon, dimensions, n)
        yield adaptive, False, lambda query: adaptive_error(adaptive, query, mean_square=mean_square)


def _stderr(
    mechanism: IntervalMechanism, n: int, mean_square: float, consistent: bool
) -> Callable[[RangeQuery], float]:
    return lambda query: expected_stderr(mechanism, query, n, mean_square=mean_square, consistent=consistent)
