"""Mechanisms that report the cell of a record: HI, HIO and MG, which differ in the levels that a person reports on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.domain.texts import BitStrings
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.reports import Ints, Reports
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.cell_sums import (
    CellSum,
    Level,
    cell_of,
    cells_of,
    consistent_terms,
    decomposition,
    single_values,
)
from hubbub.protocols.ranges.dimension import Dimension, Scored
from hubbub.random.source import Random

MOST_LEVELS = 1 << 16
MOST_SIZED = 1 << 32
"""With more cells than this, the domain of the oracle is strings of bits."""
MOST_LISTED = 1 << 20
"""With more cells than this, reports are always hashes: direct answers are counted in a table of all cells."""


@dataclass(frozen=True, eq=False)
class LevelReports:
    """The reports on one level, and which rows of the table they come from."""

    rows: Ints
    reports: Reports


@dataclass(frozen=True, eq=False)
class RangeReports:
    """The reports of n people, by level."""

    n: int
    levels: Mapping[Level, LevelReports]


@dataclass(frozen=True)
class IntervalMechanism(ABC):
    """People report the cell of their record, on one level or on all levels, by a frequency oracle.

    `epsilon`: what all reports of a person spend together. `dimensions`: the private dimensions.
    """

    epsilon: float
    dimensions: tuple[Dimension, ...]
    divided: ClassVar[bool] = True
    """Whether a person reports on one random level; otherwise they report on all, each with a part of the budget."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimensions", tuple(self.dimensions))
        units_of(self.epsilon)
        if not self.dimensions:
            raise InvalidValue("dimensions", self.dimensions, "at least one")
        levels = prod(dimension.levels for dimension in self.dimensions)
        if levels > MOST_LEVELS:
            raise InvalidValue("dimensions", levels, f"at most {MOST_LEVELS:,} levels: fewer or coarser dimensions")
        if prod(dimension.size for dimension in self.dimensions) >= 1 << 62:
            raise InvalidValue("dimensions", len(self.dimensions), "fewer than 2^62 cells")

    @property
    @abstractmethod
    def levels(self) -> tuple[Level, ...]:
        """The levels that people report on; never the level of all roots, whose one cell holds everybody."""

    @property
    def level_epsilon(self) -> float:
        """What a report on one level may spend."""
        return self.epsilon if self.divided else epsilon_of(units_of(self.epsilon) // len(self.levels))

    def oracle(self, level: Level) -> FrequencyOracle:
        """The oracle of a level: direct answers where its cells are few, else local hashing."""
        return cell_oracle(self.level_epsilon, cells_of(self.dimensions, level))

    def terms(self, box: Sequence[Scored], *, consistent: bool = False) -> CellSum:
        """A box, or numbers of the values of some dimensions, as a weighted sum of cells."""
        return (consistent_terms if consistent else decomposition)(self.dimensions, box)

    def randomize(self, records: ArrayLike, rng: Random) -> RangeReports:
        """The reports of people whose records (rows) hold a code for each dimension."""
        codes = check_records(self.dimensions, records)
        levels = self.levels
        groups = [np.arange(len(codes))] * len(levels)
        if self.divided:
            chosen = rng.below(len(levels), len(codes))
            order = np.argsort(chosen, kind="stable")
            groups = np.split(order, np.cumsum(np.bincount(chosen, minlength=len(levels)))[:-1])
        reports = {}
        for level, rows in zip(levels, groups, strict=True):
            if rows.size:
                cells = self.cell_of(level, codes[rows])
                reports[level] = LevelReports(rows, self.oracle(level).randomize(cells, rng))
        return RangeReports(len(codes), reports)

    def cell_of(self, level: Level, records: Ints) -> Ints:
        """The cell of a level that each record (row) falls in."""
        return cell_of(self.dimensions, level, records)


class HIO(IntervalMechanism):
    """A person reports on one level, drawn at random, with the whole budget (Algorithms 3 and 4).

    References
    ----------
    T. Wang, Ding et al., 2019; T. Wang, 2021, sections 7.3.2 and 7.4.1.
    """

    @property
    def levels(self) -> tuple[Level, ...]:
        return _all_levels(self.dimensions)


class HI(IntervalMechanism):
    """A person reports on every level, with a part of the budget each.

    References
    ----------
    T. Wang, Ding et al., 2019; T. Wang, 2021, sections 7.3.1 and 7.4.1.
    """

    divided = False

    @property
    def levels(self) -> tuple[Level, ...]:
        return _all_levels(self.dimensions)


class MG(IntervalMechanism):
    """A person reports their cell of the whole marginal; an answer adds up all cells of the box.

    References
    ----------
    T. Wang, Ding et al., 2019; T. Wang, 2021, section 7.2.3.
    """

    def __post_init__(self) -> None:
        flat = tuple(Dimension.categorical(dimension.size) for dimension in self.dimensions)
        object.__setattr__(self, "dimensions", flat)
        super().__post_init__()

    @property
    def levels(self) -> tuple[Level, ...]:
        return ((1,) * len(self.dimensions),)

    def terms(self, box: Sequence[Scored], *, consistent: bool = False) -> CellSum:
        if consistent:
            raise InvalidValue("consistent", consistent, "False: there is only one level")
        return single_values(self.dimensions, box)


def check_records(dimensions: tuple[Dimension, ...], records: ArrayLike) -> Ints:
    """The records as an array; refused if a code is outside its dimension."""
    codes = np.asarray(records)
    if codes.ndim != 2 or codes.shape[1] != len(dimensions) or codes.dtype.kind not in "iu":
        raise InvalidValue("records", codes.shape, f"rows of {len(dimensions)} integers")
    for column, dimension in enumerate(dimensions):
        outside = (codes[:, column] < 0) | (codes[:, column] >= dimension.size)
        if outside.any():
            code = codes[outside, column][0].item()
            raise InvalidValue(f"records[:, {column}]", code, f"integers from 0 to {dimension.size - 1}")
    return codes.astype(np.int64)


@lru_cache(maxsize=4096)
def _all_levels(dimensions: tuple[Dimension, ...]) -> tuple[Level, ...]:
    return tuple(product(*(range(dimension.levels) for dimension in dimensions)))[1:]


@lru_cache(maxsize=1 << 17)
def cell_oracle(epsilon: float, cells: int) -> FrequencyOracle:
    """The oracle for a number of cells; its reports have a few bytes."""
    if cells > MOST_SIZED:
        return OLH(epsilon=epsilon, domain=BitStrings((cells - 1).bit_length()))
    if cells > MOST_LISTED:
        return OLH(epsilon=epsilon, domain=cells)
    return adaptive(epsilon=epsilon, domain=cells, most_bytes=0)
