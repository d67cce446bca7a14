"""Answers from the reports of an adaptive hierarchy, with an error that allows for people who are not spread evenly."""

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
    """The reports of n people on a grown hierarchy, and numbers that the server knows of each: answers over ranges.

    The variance is that of the reports, given the hierarchy, by the exact formula of `SumVariance`; and of every leaf
    of which the part c is wanted, c (1 - c) times the square of what it holds: the mean square of what evenness is
    wrong by if its people are all at one of its values. That the hierarchy was grown from the same reports is not in
    it. Both are why `bias` is "heuristic".

    Parameters
    ----------
    mechanism, reports
        What `AdaptiveHierarchy.randomize` gave back.
    measures
        Numbers of at least 0 by name, each with one a person (row).

    Example:
        >>> from hubbub import Random
        >>> from hubbub.protocols.ranges.adaptive import AdaptiveHierarchy
        >>> from hubbub.protocols.ranges.dimension import Dimension
        >>> people = np.random.default_rng(1).binomial(1023, 0.2, 100_000)
        >>> adaptive = AdaptiveHierarchy(1.0, (Dimension.ordinal(1024),), 100_000)
        >>> table = AdaptiveTable(*adaptive.randomize(people[:, None], Random(seed=1)))
        >>> answer = table.answer(RangeQuery([(0, 200)]))
        >>> low, high = answer.interval()
        >>> bool(low[0] < np.sum(people <= 200) < high[0]), answer.bias
        (True, 'heuristic')
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
            alone = np.zeros(covered.size)
            alone[leaf] = 1.0
            held = self._table.weigh(self.mechanism.weigh(alone), query.measure).value[0]
            variance += covered[leaf] * (1 - covered[leaf]) * max(held, 0.0) ** 2
        return Estimate(answer.value, variance, answer.n, bias="heuristic", kind="quantity", bounds=answer.bounds)
