"""Split and conjunction (SC): every dimension reported for itself, and put together again per person."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.dimension import Codes, Cover, Dimension, Floats
from hubbub.protocols.ranges.errors_of_sums import report_variance
from hubbub.protocols.ranges.hierarchy import cell_oracle, check_records
from hubbub.protocols.ranges.measures import Measure
from hubbub.protocols.ranges.query import RangeQuery

CHUNK = 1 << 16
"""So many people are scored at a time: memory does not grow with their number."""


@dataclass(frozen=True, eq=False)
class SplitReports:
    """What n people said of each level of each dimension."""

    n: int
    levels: Mapping[tuple[int, int], Reports]


@dataclass(frozen=True)
class SC:
    """A person reports their interval on every level of every dimension, with an equal part of the budget each.

    Parameters
    ----------
    epsilon
        What all reports of a person spend together.
    dimensions
        The private dimensions.

    Example:
        >>> sc = SC(5.0, (Dimension.ordinal(625), Dimension.categorical(7)))
        >>> len(sc.levels), sc.level_epsilon
        (5, 1.0)

    References
    ----------
    Dissertation, section 7.4.3.
    """

    epsilon: float
    dimensions: tuple[Dimension, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimensions", tuple(self.dimensions))
        if not self.dimensions:
            raise InvalidValue("dimensions", self.dimensions, "at least one")
        if units_of(self.epsilon) < len(self.levels):
            raise InvalidValue("epsilon", self.epsilon, f"at least {len(self.levels)} units of 1e-12")

    @property
    def levels(self) -> tuple[tuple[int, int], ...]:
        """All that is reported: a dimension, and a level of it below the root."""
        return tuple((column, depth) for column, d in enumerate(self.dimensions) for depth in range(1, d.levels))

    @property
    def level_epsilon(self) -> float:
        """What one of a person's reports may spend."""
        return epsilon_of(units_of(self.epsilon) // len(self.levels))

    def oracle(self, level: tuple[int, int]) -> FrequencyOracle:
        """The oracle of a level of a dimension."""
        column, depth = level
        return cell_oracle(self.level_epsilon, self.dimensions[column].nodes(depth))

    def randomize(self, records: ArrayLike, rng: Random) -> SplitReports:
        """The reports of people whose records (rows) hold a code for each dimension."""
        codes = check_records(self.dimensions, records)
        said = {}
        for column, depth in self.levels:
            nodes = self.dimensions[column].node_of(codes[:, column], depth)
            said[column, depth] = self.oracle((column, depth)).randomize(nodes, rng)
        return SplitReports(len(codes), said)

    def expected_stderr(self, query: RangeQuery, n: int, *, mean_square: float = 1.0) -> float:
        """The standard error of an answer from n people, as if they were spread evenly and dimensions independent.

        Example:
            >>> dimensions = (Dimension.ordinal(625),) * 4 + (Dimension.categorical(10),) * 4
            >>> query = RangeQuery([(100, 420), *[None] * 7])
            >>> round(SC(5.0, dimensions).expected_stderr(query, 1_000_000))
            23138
        """
        query.check(self.dimensions)
        second, share = 1.0, 1.0
        for column, (dimension, wanted) in enumerate(zip(self.dimensions, query.box, strict=True)):
            if wanted is None:
                continue
            part = sum(high - low + 1 for low, high in dimension.runs(wanted)) / dimension.size
            own = part
            for depth, (nodes, weights) in enumerate(dimension.decompose(wanted)):
                if depth and nodes.size:
                    constant, slope, curve = report_variance(self.oracle((column, depth)), weights)
                    cells = dimension.nodes(depth)
                    own += constant + (slope * weights.sum() + curve * (weights @ weights)) / cells
            second, share = second * own, share * part
        return math.sqrt(n * mean_square * (second - share))


class SplitTable:
    """The reports of n people by SC, and numbers that the server knows of each: answers over boxes, with their error.

    A person's support of a dimension's intervals gives an unbiased score of whether they are in the range; as the
    dimensions are randomised independently, the product of the scores is one of whether they are in the box (it is the
    first row of the inverted transition matrix, Eqs 7.28-7.30). The variance is what the squared scores say, less the
    part that is the answer itself: unbiased too.

    Example:
        >>> from hubbub.core.random import Random
        >>> sc = SC(4.0, (Dimension.ordinal(64), Dimension.categorical(3)))
        >>> records = np.stack([np.arange(20_000) % 64, np.arange(20_000) % 3], axis=1)
        >>> table = SplitTable(sc, sc.randomize(records, Random(seed=2)))
        >>> answer = table.answer(RangeQuery([(0, 31), {0, 1}]))
        >>> low, high = answer.interval()
        >>> bool(low[0] < 6_678 < high[0]), answer.stderr.round(-2).tolist()
        (True, [700.0])
    """

    def __init__(self, mechanism: SC, reports: SplitReports, measures: Mapping[str, ArrayLike] | None = None) -> None:
        self.mechanism = mechanism
        self.reports = reports
        self._measures = {name: Measure.of(name, values) for name, values in (measures or {}).items()}
        for name, measure in self._measures.items():
            if measure.weights.size != reports.n:
                raise InvalidValue(name, measure.weights.size, f"{reports.n} numbers, one a person")

    def answer(self, query: RangeQuery) -> Estimate:
        """The number of people in a box, or the sum of a measure over them."""
        query.check(self.mechanism.dimensions)
        if query.measure is not None and query.measure not in self._measures:
            raise InvalidValue("measure", query.measure, f"one of {', '.join(self._measures) or 'no measures'}")
        measure = None if query.measure is None else self._measures[query.measure]
        value = squares = inside = 0.0
        for rows, score in self.scores(query):
            weights = np.ones(score.size) if measure is None else measure.weights[rows] / measure.scale
            value += float(weights @ score)
            squares += float(weights**2 @ score**2)
            inside += float(weights**2 @ score)
        variance = max(squares - inside, 0.0)
        bounds = (0.0, float(self.reports.n)) if measure is None else None
        n = self.reports.n
        return Estimate(np.array([value]), np.array([variance]), n, kind="quantity", bounds=bounds)

    def scores(self, query: RangeQuery) -> Iterator[tuple[slice, Floats]]:
        """People, some at a time, with the score of each: an unbiased estimate of whether they are in the box."""
        covers = [
            (column, dimension.decompose(wanted))
            for column, (dimension, wanted) in enumerate(zip(self.mechanism.dimensions, query.box, strict=True))
            if wanted is not None
        ]
        for start in range(0, self.reports.n, CHUNK):
            rows = slice(start, min(start + CHUNK, self.reports.n))
            score = np.ones(rows.stop - rows.start)
            for column, cover in covers:
                score *= self._score(column, cover, rows)
            yield rows, score

    def _score(self, column: int, cover: Cover, rows: slice) -> Floats:
        """The score of whether each person is in the range of a dimension."""
        score = np.full(rows.stop - rows.start, float(cover[0][1].sum()))
        for depth, (nodes, weights) in enumerate(cover):
            if depth and nodes.size:
                oracle = self.mechanism.oracle((column, depth))
                moments = oracle.moments()
                supported = _supported(oracle, self.reports.levels[column, depth][rows], nodes)
                score += (supported - moments.false_mean) @ weights / (moments.true_mean - moments.false_mean)
        return score


def _supported(oracle: FrequencyOracle, reports: Reports, nodes: Codes) -> Floats:
    """Whether each report (row) supports each node (column): 1 where it is one that a holder most often sends."""
    chances = oracle.log_prob(reports, nodes)
    return (chances > math.log(oracle.moments().true_mean) - oracle.effective_epsilon / 2).astype(np.float64)
