"""Choosing a mechanism for range queries, and the expected error of its answers before anybody has reported."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.frequency.bundle import MOST_ORACLES
from hubbub.planning.range_bounds import bound_stderr
from hubbub.protocols.ranges.adaptive import AdaptiveHierarchy
from hubbub.protocols.ranges.cell_sums import CellSum, SumVariance, cells_of
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.ranges.grids import HDG, LINE_ALPHA, PLANE_ALPHA
from hubbub.protocols.ranges.hierarchy import HI, HIO, MG, IntervalMechanism
from hubbub.protocols.ranges.split import SC


def expected_stderr(
    mechanism: IntervalMechanism, query: RangeQuery, n: int, *, mean_square: float = 1.0, consistent: bool = False
) -> float:
    """The standard error of an answer from n people, if they are spread evenly over the values.

    On levels with many cells the shares of the cells hardly matter.

    `mean_square`: the mean square of the measure that is added up; 1 for counts. `consistent`: as of
    `RangeTable.answer`.
    """
    query.check(mechanism.dimensions)
    return terms_stderr(mechanism, mechanism.terms(query.box, consistent=consistent), n, mean_square=mean_square)


def terms_stderr(mechanism: IntervalMechanism, terms: CellSum, n: int, *, mean_square: float = 1.0) -> float:
    """The standard error of any weighted sum of cells; parameters as of `expected_stderr`."""
    variance = SumVariance(n, n * mean_square, terms.known, divided=mechanism.divided)
    size = n // len(mechanism.levels) if mechanism.divided else n
    for term in terms.terms:
        people = np.full(term.cells.size, n / cells_of(mechanism.dimensions, term.level))
        sums, squares = people * math.sqrt(mean_square), people * mean_square
        variance.add(mechanism.oracle(term.level), size, term.weights, sums, squares)
    return math.sqrt(variance.total())


def share_error(mechanism: IntervalMechanism | SC | HDG, query: RangeQuery, n: int, part: float = 1.0) -> float | None:
    """The standard error of the share of n people who are in a box, if a part of them reports by the mechanism.

    None where there are fewer people than levels.
    """
    people = int(n * part)
    if people < (len(mechanism.levels) if isinstance(mechanism, HIO) else 1):
        return None
    if isinstance(mechanism, HDG):
        error = grid_error(HDG(mechanism.epsilon, mechanism.dimensions, people), query)
    elif isinstance(mechanism, SC):
        error = mechanism.expected_stderr(query, people) / people
    else:
        error = expected_stderr(mechanism, query, people) / people
    share = query.share(mechanism.dimensions)
    return math.sqrt(error**2 + share * (1 - share) * (1 / part - 1) / n)


def adaptive_error(mechanism: AdaptiveHierarchy, query: RangeQuery, *, mean_square: float = 1.0) -> float:
    """The standard error of an answer, from the hierarchy that results if people are spread evenly over the values.

    It includes what `AdaptiveTable` adds for people who are not spread evenly. If they are not, intervals with many
    people are finer and intervals with few are coarser, and this is only a guess.

    `mean_square`: the mean square of the measure that is added up; 1 for counts.
    """
    query.check(mechanism.dimensions)
    grown, n = mechanism.expected(), mechanism.n
    covered = grown.leaves.covered(query.box[0])
    terms = grown.weigh(covered)
    variance = SumVariance(n, n * mean_square, terms.known, divided=True)
    for term in terms.terms:
        people = n * grown.partitions[term.level[0]].widths / grown.dimension.size
        sums, squares = people * math.sqrt(mean_square), people * mean_square
        variance.add(grown.oracle(term.level), n // mechanism.rounds, term.weights, sums, squares)
    in_leaves = n * grown.leaves.widths / grown.dimension.size
    uneven = float(np.sum(covered * (1 - covered) * in_leaves**2)) * mean_square
    return math.sqrt(variance.total() + uneven)


def grid_error(grids: HDG, query: RangeQuery) -> float:
    """The error of a share by HDG: the noise of the cells in a box, and the uneven spread of people within cells.

    Where the box restricts several dimensions it is the error of the worst pair.
    """
    restricted = [column for column, selection in enumerate(query.box) if selection is not None]
    parts = {
        column: sum(high - low + 1 for low, high in grids.dimensions[column].runs(query.box[column]))
        / grids.dimensions[column].size
        for column in restricted
    }
    if not restricted:
        return 0.0
    if len(restricted) == 1:
        (column,) = restricted
        cells, uneven = grids.line_cells(column) * parts[column], LINE_ALPHA / grids.line_cells(column)
        return math.hypot(math.sqrt(4 * grids.unit * cells), _uneven(grids, column, uneven))
    errors = []
    for first, second in combinations(restricted, 2):
        cells = math.prod(grids.plane_cells(column) * parts[column] for column in (first, second))
        uneven = sum(_uneven(grids, column, PLANE_ALPHA / grids.plane_cells(column)) for column in (first, second))
        errors.append(math.hypot(math.sqrt(4 * grids.unit * cells), uneven))
    return max(errors)


def _uneven(grids: HDG, column: int, error: float) -> float:
    """The error of an uneven spread along a dimension: none where cells are single values."""
    return 0.0 if grids.line_width(column) == 1 and grids.plane_width(column) == 1 else error


MOST_COUNTED = 1 << 22
"""Least squares counts every cell of every level: with more cells than this it is not offered."""


@dataclass(frozen=True)
class RangeChoice:
    """A mechanism, how it answers, its expected error, and its bound.

    Parameters
    ----------
    consistent
        Whether answers are by least squares over all levels.
    stderr
        The root of the mean squared error of the queries.
    unbiased
        Whether answers rest on the reports alone. Otherwise they assume that people are spread evenly inside cells, and
        the error includes a guess of what that costs: with grids, the unevenness that their authors found; with an
        adaptive hierarchy, that the people of an interval are all at one of its values.
    bound
        The root mean square of the greatest errors of the queries, however people are spread (T. Wang, 2021,
        chapter 7); None where there is no bound.
    """

    mechanism: IntervalMechanism | AdaptiveHierarchy | SC | HDG
    consistent: bool
    stderr: float
    unbiased: bool
    errors: tuple[float, ...] = ()
    bound: float | None = None

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
        errors = tuple(error(query) for query in queries)
        bound = None
        if not isinstance(mechanism, HDG | AdaptiveHierarchy):
            bound = root_mean_square([bound_stderr(mechanism, query, n, mean_square=mean_square) for query in queries])
        choices.append(RangeChoice(mechanism, consistent, root_mean_square(errors), bound is not None, errors, bound))
    return sorted(choices, key=lambda choice: choice.stderr)


def root_mean_square(numbers: Sequence[float]) -> float:
    """The root of the mean of the squares."""
    return math.sqrt(sum(number**2 for number in numbers) / len(numbers))


@dataclass(frozen=True)
class MethodDivision:
    """People divided between two methods.

    Parameters
    ----------
    choices, shares
        The methods, and the part of the people that reports by each.
    stderr
        The root of the mean squared error of the queries, each answered by the method with the smaller error.
    answered
        For each query, the place of the method that answers it.
    """

    choices: tuple[RangeChoice, ...]
    shares: tuple[float, ...]
    stderr: float
    answered: tuple[int, ...]


def divide_people(ways: Sequence[RangeChoice], parts: Sequence[float], n: int) -> MethodDivision | None:
    """The best division of n people between two of the methods that SQL can route to; None if there are no two.

    A count from a part s of the people has the variance (V + n f (1 - f)) / s - n f (1 - f), V being that from all
    people and f the share of the people that are counted. Of the sums over the queries of each method, A_m, the best
    parts are as their roots.

    `ways`: of `choose_ranges`. `parts`: the part of all cells that each query has, as its share of people if they are
    spread evenly.
    """
    best: dict[type, RangeChoice] = {}
    for way in ways:
        if not isinstance(way.mechanism, AdaptiveHierarchy):
            best.setdefault(type(way.mechanism), way)
    counted = np.array([n * part * (1 - part) for part in parts])
    division: MethodDivision | None = None
    for pair in combinations(best.values(), 2):
        needs = np.array([np.square(way.errors) + counted for way in pair])
        shares = np.full(2, 0.5)
        for _ in range(50):
            answered = np.argmin(needs / shares[:, None], axis=0)
            sums = np.array([needs[place, answered == place].sum() for place in range(2)])
            if not sums.all():
                break
            shares = np.sqrt(sums) / np.sqrt(sums).sum()
        variance = needs[answered, np.arange(len(parts))] / shares[answered] - counted
        stderr = math.sqrt(float(np.mean(variance)))
        if sums.all() and (division is None or stderr < division.stderr):
            division = MethodDivision(pair, tuple(shares.tolist()), stderr, tuple(answered.tolist()))
    return division


_Candidate = tuple[IntervalMechanism | AdaptiveHierarchy | SC | HDG, bool, Callable[[RangeQuery], float]]


def _candidates(
    epsilon: float, dimensions: tuple[Dimension, ...], n: int, mean_square: float, unbiased: bool
) -> Iterator[_Candidate]:
    """The mechanisms that these dimensions allow; for each, whether it is `consistent`, and the error of a query."""
    split = SC(epsilon, dimensions)
    yield split, False, lambda query: split.expected_stderr(query, n, mean_square=mean_square)
    for kind in (HIO, HI, MG):
        if kind is HIO and math.prod(dimension.levels for dimension in dimensions) > n:
            continue  # nobody would report on some of the levels
        try:
            mechanism = kind(epsilon, dimensions)
        except InvalidValue:  # too many levels or cells
            continue
        if kind is HI and len(mechanism.levels) > MOST_ORACLES:
            continue  # no device reports on as many at once
        cells = sum(cells_of(mechanism.dimensions, level) for level in mechanism.levels)
        for consistent in (False, True) if kind is not MG else (False,):
            if cells <= MOST_COUNTED or (kind is not MG and not consistent):
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
