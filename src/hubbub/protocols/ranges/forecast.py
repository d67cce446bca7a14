"""The expected error of answers from interval mechanisms, before anybody has reported."""

from __future__ import annotations

import math

import numpy as np

from hubbub.protocols.ranges.cell_sums import CellSum, cells_of
from hubbub.protocols.ranges.errors_of_sums import SumVariance
from hubbub.protocols.ranges.hierarchy import IntervalMechanism
from hubbub.protocols.ranges.query import RangeQuery


def expected_stderr(
    mechanism: IntervalMechanism, query: RangeQuery, n: int, *, mean_square: float = 1.0, consistent: bool = False
) -> float:
    """The standard error of an answer from n people, if they are spread evenly over the values.

    On levels with many cells the shares of the cells hardly matter.

    Parameters
    ----------
    mechanism, query
        How people report, and the query.
    n
        How many people there will be.
    mean_square
        The mean square of the measure that is added up; 1 for counts.
    consistent
        As of `RangeTable.answer`.
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
