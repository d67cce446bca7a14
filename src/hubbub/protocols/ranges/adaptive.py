"""An adaptive hierarchy of one dimension: in each round, intervals that hold many people are cut into smaller ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.reports import Bools, Floats, Ints
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.cell_sums import CellSum, Level, LevelCells
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery, Scored
from hubbub.protocols.ranges.hierarchy import IntervalMechanism, LevelReports, RangeReports, cell_oracle, check_records
from hubbub.protocols.ranges.table import RangeTable
from hubbub.random.source import Random


@dataclass(frozen=True, eq=False)
class Partition:
    """A dimension cut into intervals of its hierarchy.

    `starts`: the first value of each interval, in order; the first of them is 0.
    """

    dimension: Dimension
    starts: Ints
    levels: Ints

    @staticmethod
    def at_level(dimension: Dimension, level: int) -> Partition:
        """All intervals of one level."""
        starts = np.arange(dimension.nodes(level)) * dimension.widths[level]
        return Partition(dimension, starts, np.full(starts.size, level))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def widths(self) -> Ints:
        """How many values each interval holds."""
        return np.diff(self.starts, append=self.dimension.size)

    def cell_of(self, codes: Ints) -> Ints:
        """The interval that holds each value."""
        return np.searchsorted(self.starts, codes, side="right") - 1

    def children(self) -> Ints:
        """How many intervals of the next level each interval consists of; 1 for single values."""
        finer = np.array([*self.dimension.widths[1:], 1])
        return np.asarray(-(-self.widths // finer[self.levels]))

    def split(self, chosen: Bools) -> Partition:
        """The partition in which each chosen interval is replaced by its intervals of the next level."""
        last = self.dimension.levels - 1
        starts, levels = [], []
        for start, level, width, cut in zip(self.starts, self.levels, self.widths, chosen, strict=True):
            step = self.dimension.widths[level + 1] if cut and level < last else width
            pieces = np.arange(start, start + width, step)
            starts.append(pieces)
            levels.append(np.full(pieces.size, level + int(cut and level < last)))
        return Partition(self.dimension, np.concatenate(starts), np.concatenate(levels))

    def covered(self, selection: Scored) -> Floats:
        """The part of each interval's values that is selected; of numbers of values, their mean in each interval."""
        if isinstance(selection, np.ndarray):
            return np.asarray(np.add.reduceat(self.dimension.numbers(selection), self.starts) / self.widths)
        inside: Ints = np.zeros(len(self), dtype=np.int64)
        for low, high in self.dimension.runs(selection):
            first, stop = np.maximum(self.starts, low), np.minimum(self.starts + self.widths, high + 1)
            inside += np.maximum(stop - first, 0)
        return np.asarray(inside / self.widths)


@dataclass(frozen=True)
class GrownHierarchy(IntervalMechanism):
    """A person reports their interval of one of several partitions of a dimension, each finer than the last.

    A sum over values is estimated from all partitions by weighted least squares, given the total. Inside an interval of
    the last partition people are assumed to be spread evenly; answers for whole intervals are unbiased.

    `epsilon`, `dimensions`: what a report may spend, and the one private dimension. `partitions`: the partitions,
    coarsest first; a level is the number of a partition.
    """

    partitions: tuple[Partition, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.dimensions) != 1:
            raise InvalidValue("dimensions", len(self.dimensions), "one")
        if not self.partitions:
            raise InvalidValue("partitions", self.partitions, "at least one")

    @property
    def dimension(self) -> Dimension:
        return self.dimensions[0]

    @property
    def leaves(self) -> Partition:
        """The last partition."""
        return self.partitions[-1]

    @property
    def levels(self) -> tuple[Level, ...]:
        return tuple((number,) for number in range(len(self.partitions)))

    def oracle(self, level: Level) -> FrequencyOracle:
        return cell_oracle(self.epsilon, len(self.partitions[level[0]]))

    def cell_of(self, level: Level, records: Ints) -> Ints:
        return self.partitions[level[0]].cell_of(records[:, 0])

    def terms(self, box: Sequence[Scored], *, consistent: bool = True) -> CellSum:
        """The least-squares weights of a box, given the total, whether or not `consistent`."""
        return self.weigh(self.leaves.covered(box[0]))

    def weigh(self, leaf_weights: Floats) -> CellSum:
        """The least-squares weights of all intervals for a weighted sum of the leaves.

        With y_l the estimates of partition l, of variance v_l, and A_l the 0-1 matrix from leaves to its intervals, the
        matrix sum_l A_l'A_l / v_l is inverted upwards (Sherman and Morrison), as in `least_squares`.
        """
        precisions = [1 / _independent_variance(self.oracle(level)) for level in self.levels]
        nodes = [partition.cell_of(self.leaves.starts) for partition in self.partitions]
        solution, ones = leaf_weights / precisions[-1], np.full(len(self.leaves), 1 / precisions[-1])
        for node, precision in zip(nodes[-2::-1], precisions[-2::-1], strict=True):
            totals = np.bincount(node, ones)
            factor = precision / (1 + precision * totals)
            solution = solution - (np.bincount(node, solution) * factor)[node] * ones
            ones = ones - (totals * factor)[node] * ones
        known = float(solution.sum() / ones.sum())
        solution = solution - known * ones
        terms = [
            LevelCells(level, np.arange(len(partition)), np.bincount(node, precision * solution).astype(np.float64))
            for level, partition, node, precision in zip(self.levels, self.partitions, nodes, precisions, strict=True)
        ]
        return CellSum(terms, known)


def _independent_variance(oracle: FrequencyOracle) -> float:
    """The part of the variance of one report's support of a cell that is independent of the other cells."""
    noise = oracle.noise(1)
    return noise.floor - noise.pair_floor


FIRST_CELLS = 4
"""The first round asks for the first level with this many intervals or more: coarser levels tell almost nothing."""


@dataclass(frozen=True)
class AdaptiveHierarchy:
    """People are divided into rounds; the reports of a round decide which intervals are cut for the next round.

    **Which intervals are cut.** Let V be the variance of an interval's share from the reports of all n people, and let
    a query be the values between two of the d+1 borders, drawn at random. Cutting an interval of share f and width w
    into b adds b - 1 noisy shares. With the total known, a range of the part p of the intervals has the variance
    p (1 - p) V for each of them, on average V/6: the cut costs (b - 1) V/6. A border of the query falls into the
    interval with chance w/d. If the people of the interval are all at one of its values, then spreading them evenly is
    wrong by f (u - 1[a < u]), with u and a uniform: the mean square is f^2/6, for two borders 2 (w/d) f^2/6, and a b-th
    of it is left after the cut. The cut saves more than it costs where

        f^2 > V b d / (2 w).

    The square of an estimated share is too large by its variance, which is subtracted. AHEAD's own rule is f > sqrt(b +
    1) times an error, whatever the width. Both assume the worst case, in which people are all at one value.

    `epsilon`: what a person's report may spend; everybody answers in one round. `dimensions`: the one private
    dimension, with an order.

    References
    ----------
    Du et al., 2021.
    """

    epsilon: float
    dimensions: tuple[Dimension, ...]
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimensions", tuple(self.dimensions))
        units_of(self.epsilon)
        check_integer("n", self.n, 1)
        if len(self.dimensions) != 1 or self.dimensions[0].levels < 3:
            raise InvalidValue("dimensions", self.dimensions, "one, with an order and levels between root and values")

    @property
    def first(self) -> Partition:
        """The intervals that the first round reports on."""
        dimension = self.dimensions[0]
        fine_enough = (level for level in range(1, dimension.levels) if dimension.nodes(level) >= FIRST_CELLS)
        return Partition.at_level(dimension, next(fine_enough, dimension.levels - 1))

    @property
    def rounds(self) -> int:
        """How many rounds there are: one for each level from that of `first` on."""
        return self.dimensions[0].levels - int(self.first.levels[0])

    def oracle(self, partition: Partition) -> FrequencyOracle:
        """The oracle of a partition's intervals."""
        return cell_oracle(self.epsilon, len(partition))

    def thresholds(self, partition: Partition) -> Floats:
        """For each interval, the share above which cutting it saves more than it costs."""
        variance = self.oracle(partition).variance(self.n)
        parts = partition.widths / self.dimensions[0].size
        return np.asarray(np.sqrt(variance * partition.children() / (2 * parts)))

    def worth_cutting(self, partition: Partition, shares: Floats, variances: Floats) -> Bools:
        """Whether each interval is cut for the next round, from the estimates of the shares."""
        squares = shares**2 - variances
        return np.asarray((shares > 0) & (squares > self.thresholds(partition) ** 2) & (partition.children() > 1))

    def randomize(self, records: ArrayLike, rng: Random) -> tuple[GrownHierarchy, RangeReports]:
        """Run all rounds with people whose records (rows) hold one code; return the hierarchy and all reports."""
        codes = check_records(self.dimensions, records)
        groups = rng.below(self.rounds, len(codes))
        growth = Growth(self)
        levels: dict[Level, LevelReports] = {}
        for number in range(self.rounds):
            rows = np.flatnonzero(groups == number)
            reports = self.oracle(growth.partition).randomize(growth.partition.cell_of(codes[rows, 0]), rng)
            if rows.size:
                levels[(number,)] = LevelReports(rows, reports)
            cells = np.arange(len(growth.partition), dtype=np.uint64)
            growth.add(self.oracle(growth.partition).supports(reports, cells), rows.size)
        return growth.grown(), RangeReports(len(codes), levels)

    def expected(self) -> GrownHierarchy:
        """The hierarchy that would result if people were spread evenly and estimates had no noise."""
        partitions = [self.first]
        for _ in range(1, self.rounds):
            partition = partitions[-1]
            shares = partition.widths / self.dimensions[0].size
            partitions.append(partition.split(self.worth_cutting(partition, shares, np.zeros(len(partition)))))
        return GrownHierarchy(self.epsilon, self.dimensions, tuple(partitions))


class Growth:
    """The server's side of an adaptive hierarchy: it takes the supports of each round and decides what to ask next."""

    def __init__(self, mechanism: AdaptiveHierarchy) -> None:
        self._mechanism = mechanism
        self._partitions: list[Partition] = []
        self.partition = mechanism.first
        """The intervals that the next round reports on."""
        self._sums = np.zeros(len(self.partition))
        self._people = np.zeros(len(self.partition))

    def add(self, supports: Ints, n: int) -> None:
        """Add the supports of the intervals among the n reports of a round, and cut the intervals that are worth it."""
        partition = self.partition
        self._partitions.append(partition)
        if n == 0 or len(self._partitions) == self._mechanism.rounds:
            return
        oracle = self._mechanism.oracle(partition)
        moments = oracle.moments()
        estimates = (supports - n * moments.false_mean) / (moments.true_mean - moments.false_mean)
        # an interval that was not cut is reported again: the mean of all rounds decides
        self._sums, self._people = self._sums + estimates, self._people + n
        variances = oracle.variance(1) / self._people
        chosen = self._mechanism.worth_cutting(partition, self._sums / self._people, variances)
        self.partition = partition.split(chosen)
        before = partition.cell_of(self.partition.starts)
        self._sums, self._people = (np.where(chosen, 0.0, totals)[before] for totals in (self._sums, self._people))

    def grown(self) -> GrownHierarchy:
        """The hierarchy of the partitions that were asked for so far."""
        return GrownHierarchy(self._mechanism.epsilon, self._mechanism.dimensions, tuple(self._partitions))


class AdaptiveTable:
    """The reports of n people on a grown hierarchy, and public measures of them: answers queries over ranges.

    The variance has two parts: that of the reports, given the hierarchy, by the exact formula of `SumVariance`; and for
    every leaf of which the query wants a part c, c (1 - c) times the square of its estimated sum. The latter is the
    mean squared error of spreading the leaf's people evenly if they are all at one of its values. The variance does not
    include that the hierarchy depends on the same reports. For both reasons `bias` is "heuristic".

    `mechanism`, `reports`: the results of `AdaptiveHierarchy.randomize`. `measures`: measures by name: numbers of at
    least 0, one for each person (row).
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
