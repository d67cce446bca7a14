"""An adaptive hierarchy of one dimension: intervals are cut, round by round, where many people are."""

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
"""The first round asks for the first level of at least so many intervals: coarser ones tell next to nothing."""


@dataclass(frozen=True)
class AdaptiveHierarchy:
    """People are divided into rounds; the reports of a round decide which intervals the next one cuts.

    **Which intervals are cut.** Let V be the variance of an interval's share from the reports of all n people, and let
    a query be the values between two of the d+1 borders, drawn at random. Cutting an interval of share f and width w
    into b adds b - 1 noisy shares. With the total known, a range of the part p of the intervals has the variance
    p (1 - p) V for each of them, on average V/6: the cut costs (b - 1) V/6. A border of the query falls into the
    interval with chance w/d. If its people are all at one of its values, spreading them evenly is then wrong by
    f (u - 1[a < u]), with u and a uniform: on average of the square f^2/6, for two borders 2 (w/d) f^2/6, of which
    1/b is left after the cut. It saves more than it costs where

        f^2 > V b d / (2 w).

    The estimate's square is too large by its own variance, which is subtracted. The rule of AHEAD's authors asks for
    f > sqrt(b + 1) times an error, whatever the width; people all at one value are the worst case in both.

    Parameters
    ----------
    epsilon
        What a person's report may spend; everybody answers in one round.
    dimensions
        The one private dimension, with an order.
    n
        How many people are expected.

    Example:
        >>> adaptive = AdaptiveHierarchy(1.0, (Dimension.ordinal(1024),), 300_000)
        >>> adaptive.rounds, len(adaptive.first)
        (4, 9)
        >>> people = np.random.default_rng(1).binomial(1023, 0.2, 300_000)
        >>> grown, reports = adaptive.randomize(people[:, None], Random(seed=1))
        >>> [len(partition) for partition in grown.partitions]
        [9, 13, 25, 49]

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
        """What the first round is asked."""
        dimension = self.dimensions[0]
        enough = (level for level in range(1, dimension.levels) if dimension.nodes(level) >= FIRST_CELLS)
        return Partition.at_level(dimension, next(enough, dimension.levels - 1))

    @property
    def rounds(self) -> int:
        """How many rounds there are: one for each level from the first that is asked."""
        return self.dimensions[0].levels - int(self.first.levels[0])

    def oracle(self, partition: Partition) -> FrequencyOracle:
        """The oracle of a partition's intervals."""
        return cell_oracle(self.epsilon, len(partition))

    def thresholds(self, partition: Partition) -> Floats:
        """The share above which cutting each interval saves more than it costs.

        Example:
            >>> adaptive = AdaptiveHierarchy(1.0, (Dimension.ordinal(1024),), 300_000)
            >>> adaptive.thresholds(adaptive.first)[:2].round(3).tolist()
            [0.015, 0.015]
        """
        variance = self.oracle(partition).variance(self.n)
        parts = partition.widths / self.dimensions[0].size
        return np.asarray(np.sqrt(variance * partition.children() / (2 * parts)))

    def worth_cutting(self, partition: Partition, shares: Floats, variances: Floats) -> NDArray[np.bool_]:
        """Which intervals the next round cuts, from the estimates of their shares."""
        squares = shares**2 - variances
        return np.asarray((shares > 0) & (squares > self.thresholds(partition) ** 2) & (partition.children() > 1))

    def randomize(self, records: ArrayLike, rng: Random) -> tuple[GrownHierarchy, RangeReports]:
        """The whole conversation with people whose records (rows) hold one code: what it grew, and all reports."""
        codes = check_records(self.dimensions, records)
        groups = rng.below(self.rounds, len(codes))
        growth = Growth(self)
        levels: dict[Level, LevelReports] = {}
        for number in range(self.rounds):
            rows = np.flatnonzero(groups == number)
            reports = self.oracle(growth.partition).randomize(growth.partition.cell_of(codes[rows, 0]), rng)
            if rows.size:
                levels[(number,)] = LevelReports(rows, reports)
            growth.add(self.oracle(growth.partition).supports(reports, _every(growth.partition)), rows.size)
        return growth.grown(), RangeReports(len(codes), levels)

    def expected(self) -> GrownHierarchy:
        """The hierarchy that would grow if people were spread evenly and reports told their shares without noise.

        Example:
            >>> AdaptiveHierarchy(1.0, (Dimension.ordinal(1024),), 300_000).expected().leaves.widths[0]
            np.int64(25)
        """
        partitions = [self.first]
        for _ in range(1, self.rounds):
            partition = partitions[-1]
            shares = partition.widths / self.dimensions[0].size
            partitions.append(partition.split(self.worth_cutting(partition, shares, np.zeros(len(partition)))))
        return GrownHierarchy(self.epsilon, self.dimensions, tuple(partitions))


class Growth:
    """The server's side of an adaptive hierarchy: it is told the supports of each round, and says what to ask next.

    Example:
        >>> growth = Growth(AdaptiveHierarchy(1.0, (Dimension.ordinal(16, fanout=4),), 3000))
        >>> growth.add(np.array([600, 200, 200, 200]), 1200)
        >>> growth.partition.starts.tolist()
        [0, 1, 2, 3, 4, 8, 12]
    """

    def __init__(self, mechanism: AdaptiveHierarchy) -> None:
        self._mechanism = mechanism
        self._asked: list[Partition] = []
        self.partition = mechanism.first
        """What the next round is asked."""
        self._sums = np.zeros(len(self.partition))
        self._people = np.zeros(len(self.partition))

    def add(self, supports: Codes, n: int) -> None:
        """Take the supports of the intervals among the n reports of a round, and cut those that are worth it."""
        partition = self.partition
        self._asked.append(partition)
        if n == 0 or len(self._asked) == self._mechanism.rounds:
            return
        oracle = self._mechanism.oracle(partition)
        moments = oracle.moments()
        held = (supports - n * moments.false_mean) / (moments.true_mean - moments.false_mean)
        # intervals that were not cut are heard of again: the mean of all rounds decides
        self._sums, self._people = self._sums + held, self._people + n
        variances = oracle.variance(1) / self._people
        chosen = self._mechanism.worth_cutting(partition, self._sums / self._people, variances)
        self.partition = partition.split(chosen)
        before = partition.cell_of(self.partition.starts)
        self._sums, self._people = (np.where(chosen, 0.0, known)[before] for known in (self._sums, self._people))

    def grown(self) -> GrownHierarchy:
        """The partitions that were asked for so far."""
        return GrownHierarchy(self._mechanism.epsilon, self._mechanism.dimensions, tuple(self._asked))


def _every(partition: Partition) -> NDArray[np.uint64]:
    return np.arange(len(partition), dtype=np.uint64)
