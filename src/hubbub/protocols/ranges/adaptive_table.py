"""Answers from the reports of an adaptive hierarchy, with an error that allows for an uneven spread of people."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.protocols.ranges.grown import GrownHierarchy
from hubbub.protocols.ranges.hierarchy import RangeReports
from hubbub.protocols.ranges.query import RangeQuery
from hubbub.protocols.ranges.table import RangeTable


class AdaptiveTable:
    """The reports of n people on a grown hierarchy, and public measures of them: answers queries over ranges.

    The variance has two parts: that of the reports, given the hierarchy, by the exact formula of `SumVariance`; and for
    every leaf of which the query wants a part c, c (1 - c) times the square of its estimated sum. The latter is the
    mean squared error of spreading the leaf's people evenly if they are all at one of its values. The variance does not
    include that the hierarchy depends on the same reports. For both reasons `bias` is "heuristic".

    Parameters
    ----------
    mechanism, reports
        The results of `AdaptiveHierarchy.randomize`.
    measures
        Measures by name: numbers of at least 0, one for each person (row).
    """

    def __init__(
        self, mechanism: GrownHierarchy, reports: RangeReports, measures: Mapping[str, ArrayLike] | None = None
    ) -> None:
        self.mechanism = mechanism
        for name, values in (measures or {}).items():
            least = float(np.min(np.asarray(values, dtype=np.float64), initial=0.0))
            if least < 0:
                raise InvalidValue(name, least, "numbers of at least 0")
        self._table = RangeTable(mechanism, reports, measures)

    def answer(self, query: RangeQuery) -> Estimate:
        """The number of people in a range, or the sum of a measure over them."""
        query.check(self.mechanism.dimensions)
        covered = self.mechanism.leaves.covered(query.box[0])
        answer = self._table.weigh(self.mechanism.weigh(covered), query.measure)
        variance = answer.variance.copy()
        for leaf in np.flatnonzero((covered > 0) & (covered < 1)):
            only_leaf = np.zeros(covered.size)
            only_leaf[leaf] = 1.0
            leaf_sum = self._table.weigh(self.mechanism.weigh(only_leaf), query.measure).value[0]
            variance += covered[leaf] * (1 - covered[leaf]) * max(leaf_sum, 0.0) ** 2
        return Estimate(answer.value, variance, answer.n, bias="heuristic", kind="quantity", bounds=answer.bounds)
