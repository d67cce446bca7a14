"""Split and conjunction (SC): a person reports on every dimension separately, and the server combines the reports."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.reports import Floats, Ints, Reports
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.cell_sums import report_variance
from hubbub.protocols.ranges.dimension import Cover, Dimension, RangeQuery, Scored
from hubbub.protocols.ranges.hierarchy import cell_oracle, check_records
from hubbub.protocols.ranges.table import find_measure, read_measures
from hubbub.random.source import Random

CHUNK = 1 << 13
"""How many people are scored at a time: memory does not grow with their number."""
MOST_PAIRS = 1 << 20
"""How many pairs of a person and an interval are looked at together."""


@dataclass(frozen=True, eq=False)
class SplitReports:
    """The reports of n people on each level of each dimension."""

    n: int
    levels: Mapping[tuple[int, int], Reports]


@dataclass(frozen=True)
class SC:
    """A person reports their interval on every level of every dimension, with an equal part of the budget each.

    `epsilon`: what all reports of a person spend together. `dimensions`: the private dimensions.

    References
    ----------
    T. Wang, Ding et al., 2019; T. Wang, 2021, section 7.4.3.
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
        """What a person reports on, as (dimension, level): every level below the root of every dimension."""
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
        reports = {}
        for column, depth in self.levels:
            nodes = self.dimensions[column].node_of(codes[:, column], depth)
            reports[column, depth] = self.oracle((column, depth)).randomize(nodes, rng)
        return SplitReports(len(codes), reports)

    def expected_stderr(self, query: RangeQuery, n: int, *, mean_square: float = 1.0) -> float:
        """The standard error of an answer from n people, if they are spread evenly and dimensions are independent."""
        query.check(self.dimensions)
        squared_score, share = 1.0, 1.0
        for column, (dimension, selection) in enumerate(zip(self.dimensions, query.box, strict=True)):
            if selection is None:
                continue
            part = sum(high - low + 1 for low, high in dimension.runs(selection)) / dimension.size
            squared = part
            for depth, (nodes, weights) in enumerate(dimension.decompose(selection)):
                if depth and nodes.size:
                    constant, slope, curve = report_variance(self.oracle((column, depth)), weights)
                    cells = dimension.nodes(depth)
                    squared += constant + (slope * weights.sum() + curve * (weights @ weights)) / cells
            squared_score, share = squared_score * squared, share * part
        return math.sqrt(n * mean_square * (squared_score - share))


class SplitTable:
    """The reports of n people by SC, and public measures of them: answers queries over boxes, with their error.

    From a person's reports on a dimension follows a score, an unbiased estimate of whether the person is in the range
    (1) or not (0). The dimensions are randomised independently, so that the product of the scores is an unbiased
    estimate of whether the person is in the box (it is the first row of the inverted transition matrix, Eqs 7.28-7.30).
    The variance is estimated, without bias, by the sum of the squared scores minus the sum of the scores.
    """

    def __init__(self, mechanism: SC, reports: SplitReports, measures: Mapping[str, ArrayLike] | None = None) -> None:
        self.mechanism = mechanism
        self.reports = reports
        self._measures = read_measures(measures, reports.n)

    def answer(self, query: RangeQuery) -> Estimate:
        """The number of people in a box, or the sum of a measure over them."""
        query.check(self.mechanism.dimensions)
        measure = find_measure(self._measures, query.measure)
        value = squares = inside = 0.0
        for rows, score in self.scores(query.box):
            weights = np.ones(score.size) if measure is None else measure.weights[rows] / measure.scale
            value += float(weights @ score)
            squares += float(weights**2 @ score**2)
            inside += float(weights**2 @ score)
        variance = max(squares - inside, 0.0)
        bounds = (0.0, float(self.reports.n)) if measure is None else None
        n = self.reports.n
        return Estimate(np.array([value]), np.array([variance]), n, kind="quantity", bounds=bounds)

    def scores(self, box: Sequence[Scored]) -> Iterator[tuple[slice, Floats]]:
        """The score of each person, in chunks of people: an unbiased estimate of whether the person is in the box.

        Where a dimension has numbers instead of a selection, it estimates the product of the person's numbers.
        """
        covers = [
            (column, dimension.decompose(selection))
            for column, (dimension, selection) in enumerate(zip(self.mechanism.dimensions, box, strict=True))
            if selection is not None
        ]
        for start in range(0, self.reports.n, CHUNK):
            rows = slice(start, min(start + CHUNK, self.reports.n))
            score = np.ones(rows.stop - rows.start)
            for column, cover in covers:
                score *= self.column_scores(column, [cover], rows)[0]
            yield rows, score

    def column_scores(self, column: int, covers: Sequence[Cover], rows: slice) -> Floats:
        """The score of some people (columns) for each of some ranges of one dimension (rows)."""
        scores = np.repeat([[float(cover[0][1].sum())] for cover in covers], rows.stop - rows.start, axis=1)
        for depth in range(1, self.mechanism.dimensions[column].levels):
            nodes = np.unique(np.concatenate([cover[depth][0] for cover in covers]))
            if nodes.size:
                weights = np.zeros((len(covers), nodes.size))
                for row, cover in zip(weights, covers, strict=True):
                    row[np.searchsorted(nodes, cover[depth][0])] = cover[depth][1]
                oracle = self.mechanism.oracle((column, depth))
                moments = oracle.moments()
                weights /= moments.true_mean - moments.false_mean
                some = max(MOST_PAIRS // nodes.size, 1)
                for start in range(0, scores.shape[1], some):
                    piece = slice(start, min(start + some, scores.shape[1]))
                    own = slice(rows.start + piece.start, rows.start + piece.stop)
                    supported = _supported(oracle, self.reports.levels[column, depth][own], nodes)
                    scores[:, piece] += weights @ (supported - moments.false_mean).T
        return scores


def _supported(oracle: FrequencyOracle, reports: Reports, nodes: Ints) -> Floats:
    """1 where a report (row) supports a node (column), else 0: it supports the values that it is likeliest from."""
    chances = oracle.log_prob(reports, nodes)
    return (chances > math.log(oracle.moments().true_mean) - oracle.effective_epsilon / 2).astype(np.float64)
