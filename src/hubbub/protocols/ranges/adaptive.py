"""An adaptive hierarchy of one dimension: in each round, intervals that hold many people are cut into smaller ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import units_of
from hubbub.core.random import Random
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.cell_sums import Level
from hubbub.protocols.ranges.dimension import Codes, Dimension, Floats
from hubbub.protocols.ranges.grown import GrownHierarchy
from hubbub.protocols.ranges.hierarchy import LevelReports, RangeReports, cell_oracle, check_records
from hubbub.protocols.ranges.partition import Partition

FIRST_CELLS = 4
"""The first round asks for the first level with at least so many intervals: coarser levels tell next to nothing."""


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

    Parameters
    ----------
    epsilon
        What a person's report may spend; everybody answers in one round.
    dimensions
        The one private dimension, with an order.
    n
        How many people are expected.

    References
    ----------
    Du, Zhang, Bai, Liu, Ji, Cheng, Chen: AHEAD: adaptive hierarchical decomposition for range query under local
    differential privacy. CCS 2021.
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

    def worth_cutting(self, partition: Partition, shares: Floats, variances: Floats) -> NDArray[np.bool_]:
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
        self._asked: list[Partition] = []
        self.partition = mechanism.first
        """The intervals that the next round reports on."""
        self._sums = np.zeros(len(self.partition))
        self._people = np.zeros(len(self.partition))

    def add(self, supports: Codes, n: int) -> None:
        """Add the supports of the intervals among the n reports of a round, and cut the intervals that are worth it."""
        partition = self.partition
        self._asked.append(partition)
        if n == 0 or len(self._asked) == self._mechanism.rounds:
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
        return GrownHierarchy(self._mechanism.epsilon, self._mechanism.dimensions, tuple(self._asked))
