"""The expected error of answers from an adaptive hierarchy."""

from __future__ import annotations

import math

import numpy as np

from hubbub.protocols.ranges.adaptive import AdaptiveHierarchy
from hubbub.protocols.ranges.errors_of_sums import SumVariance
from hubbub.protocols.ranges.query import RangeQuery


def adaptive_error(mechanism: AdaptiveHierarchy, query: RangeQuery, *, mean_square: float = 1.0) -> float:
    """The standard error of an answer, from the hierarchy that results if people are spread evenly over the values.

    It includes what `AdaptiveTable` adds for people who are not spread evenly. If they are not, intervals with many
    people are finer and intervals with few are coarser, and this is only a guess.

    Parameters
    ----------
    mechanism, query
        How people report, and the query.
    mean_square
        The mean square of the measure that is added up; 1 for counts.
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
