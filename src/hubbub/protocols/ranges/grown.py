"""A hierarchy of intervals that was made finer, round by round, where many people are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.cell_sums import CellSum, Level, LevelCells
from hubbub.protocols.ranges.dimension import Codes, Dimension, Floats, Selection
from hubbub.protocols.ranges.hierarchy import IntervalMechanism, cell_oracle
from hubbub.protocols.ranges.partition import Partition


@dataclass(frozen=True)
class GrownHierarchy(IntervalMechanism):
    """A person reports their interval of one of several partitions of a dimension, each finer than the last.

    A sum over values is estimated from all partitions by weighted least squares, given the total. Inside an interval of
    the last partition people are assumed to be spread evenly; answers for whole intervals are unbiased.

    Parameters
    ----------
    epsilon, dimensions
        What a report may spend, and the one private dimension.
    partitions
        The partitions, coarsest first; a level is the number of a partition.
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
        """The one dimension."""
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

    def cell_of(self, level: Level, records: Codes) -> Codes:
        return self.partitions[level[0]].cell_of(records[:, 0])

    def terms(self, box: Sequence[Selection], *, consistent: bool = True) -> CellSum:
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
