"""The error that answers from an adaptive hierarchy are expected to have."""

from __future__ import annotations

import math

import numpy as np

from hubbub.protocols.ranges.adaptive import AdaptiveHierarchy
from hubbub.protocols.ranges.errors_of_sums import SumVariance
from hubbub.protocols.ranges.query import RangeQuery


def adaptive_error(mechanism: AdaptiveHierarchy, query: RangeQuery, *, mean_square: float = 1.0) -> float:
    """The standard error of an answer, with the hierarchy that people spread evenly over the values would let grow.

    It counts in what `AdaptiveTable` allows for unevenness. Where people are not spread evenly, intervals of many are
    finer and those of few coarser; then this is a guess.

    Parameters
    ----------
    mechanism, query
        How people report, and what is asked.
    mean_square
        Of the measure that is added up; 1 for counts.

    Example:
        >>> from hubbub.protocols.ranges.dimension import Dimension
        >>> adaptive = AdaptiveHierarchy(2.0, (Dimension.ordinal(1024),), 1_000_000)
        >>> round(adaptive_error(adaptive, RangeQuery([(130, 720)])))
        3353
    """
    query.check(mechanism.dimensions)
    grown, n = mechanism.expected(), mechanism.n
    covered = grown.leaves.covered(query.box[0])
    terms = grown.weigh(covered)
    variance = SumVariance(n, n * mean_square, terms.known, divided=True)
    for term in terms.terms:
        held = n * grown.partitions[term.level[0]].widths / grown.dimension.size
        size = n // mechanism.rounds
        variance.add(grown.oracle(term.level), size, term.weights, held * math.sqrt(mean_square), held * mean_square)
    leaves = n * grown.leaves.widths / grown.dimension.size
    uneven = float(np.sum(covered * (1 - covered) * leaves**2)) * mean_square
    return math.sqrt(variance.total() + uneven)
