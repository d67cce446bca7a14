"""What the parts of the devices are asked for a table, by each of its methods; and which part tells of which column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from hubbub.core.domain import NONE, Domain, Numeric
from hubbub.core.domain.texts import BitStrings
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats, Ints
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.bundle import MOST_ORACLES, Bundle
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.measured import Measured
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ask import shared_arcs
from hubbub.protocols.ranges.cell_sums import cells_of
from hubbub.protocols.ranges.dimension import Dimension
from hubbub.protocols.ranges.grids import HDG
from hubbub.protocols.ranges.hierarchy import HI, MG
from hubbub.protocols.ranges.split import SC
from hubbub.protocols.steady import ColumnShares, LevelPart
from hubbub.protocols.views.records import Axis, CellAxis, CodeAxis, Joint, Joints, PublicNumber, WithNumbers
from hubbub.query.schema import Level, TableSchema

MOST_COUNTED = 1 << 12
"""How many cells are counted as reports come: of a single column, of a grid, or of the whole marginal (MG)."""
MOST_PARTS = 256
"""Devices are divided into at most as many parts."""
MOST_SHOWN = 100
"""How many shares of a column a release has; of a column with more values, it has the shares of intervals."""


@lru_cache(maxsize=4096)
def device_oracle(epsilon: float, cells: int, *, listed: bool) -> FrequencyOracle:
    """The oracle of a level as devices run it: direct answers if there are few cells, else hashes.

    Only the cells that a release lists are counted as reports come. Cells of other levels are strings of bits, and
    those that a query needs are counted among the kept reports.
    """
    if cells < 3 * math.exp(min(epsilon, 50.0)) + 2:
        return GRR(epsilon=epsilon, domain=cells)
    if listed and cells <= MOST_COUNTED:
        return OLH(epsilon=epsilon, domain=cells)
    return OLH(epsilon=epsilon, domain=BitStrings(max(cells - 1, 1).bit_length()))


def interval_name(domain: Domain, first: int, last: int) -> str:
    """The name of an interval of codes."""
    assert domain.size is not None
    beyond = f" or {NONE}" if last >= domain.size else ""
    if first >= domain.size:
        return NONE
    last = min(last, domain.size - 1)
    if isinstance(domain, Numeric):
        return f"{domain.edges[first]:g} to {domain.edges[last + 1]:g}{beyond}"
    names = domain.labels
    ends = [str(code) if names is None else names[code] for code in (first, last)]
    return (ends[0] if first == last else f"{ends[0]} to {ends[1]}") + beyond


@dataclass(frozen=True)
class TableParts:
    """The parts of the devices that a table asks, in the order of `TableSchema.parts`.

    `measures`: the numeric fields that are sent as they are, with their ranges.
    """

    schema: TableSchema
    measures: Mapping[str, Numeric]

    def check(self) -> None:
        """Refuse what would need too many parts, too many reports of a device, or too many counts."""
        parts = self.schema.parts
        if len(parts) > MOST_PARTS:
            allowed = f"columns with at most {MOST_PARTS} levels: fewer, or a larger fanout"
            raise InvalidValue("columns", f"{len(parts):,} levels", allowed)
        if math.prod(column.size for column in self.schema.private) > 1 << 53:
            raise InvalidValue("columns", len(self.schema.private), "columns whose values make at most 2^53 cells")
        most = max(map(len, parts))
        if most > MOST_ORACLES:
            allowed = f"HIO, or at most {MOST_ORACLES} levels, on all of which a device reports"
            raise InvalidValue("method", f"{listed_levels(self.schema)} with {most:,} levels", allowed)
        for mechanism in self.schema.mechanisms:
            cells = cells_of(mechanism.dimensions, mechanism.levels[0]) if isinstance(mechanism, MG) else 0
            if cells > MOST_COUNTED:
                raise InvalidValue("method", f"MG of {cells:,} cells", f"MG of at most {MOST_COUNTED:,} cells, or HIO")
        for column in self.columns:
            if len(column.labels) > MOST_COUNTED:
                allowed = f"at most {MOST_COUNTED:,} names, or intervals of the first level: a smaller fanout"
                raise InvalidValue("columns", f"{column.name}, {len(column.labels):,} intervals", allowed)

    @cached_property
    def parts(self) -> tuple[LevelPart, ...]:
        """What each part is asked."""
        numbers = [
            sum(levels[0][0] == place for levels in self.schema.parts) for place in range(len(self.schema.methods))
        ]
        arcs = shared_arcs(self.schema.shares, numbers)
        parts = []
        for levels, arc in zip(self.schema.parts, arcs, strict=True):
            asked = [self._cell(level) for level in levels]
            view: Joint | Joints = asked[0][0]
            mechanism: ReportFormat = asked[0][1]
            if len(asked) > 1:
                view = Joints(tuple(each for each, _ in asked))
                epsilon, oracles = self.schema.epsilon, tuple(oracle for _, oracle in asked)
                mechanism = Bundle(epsilon=epsilon, oracles=oracles, measures=len(self.measures))
            elif self.measures:
                oracle = asked[0][1]
                mechanism = Measured(
                    epsilon=oracle.epsilon, domain=oracle.domain, oracle=oracle, measures=len(self.measures)
                )
            public = tuple(PublicNumber(name, domain.low, domain.high) for name, domain in self.measures.items())
            parts.append(LevelPart(WithNumbers(view, public) if public else view, mechanism, arc))
        return tuple(parts)

    def _cell(self, level: Level) -> tuple[Joint, FrequencyOracle]:
        """The cell of a record on a level, and the oracle that reports it."""
        mechanism, subject = self.schema.mechanisms[level[0]], level[1:]
        if isinstance(mechanism, HDG):
            widths = [
                (column, mechanism.line_width(column) if len(subject) == 1 else mechanism.plane_width(column))
                for column in subject
            ]
            listed, epsilon = True, mechanism.epsilon
        elif isinstance(mechanism, SC):
            column, depth = subject
            widths, epsilon = [(column, mechanism.dimensions[column].widths[depth])], mechanism.level_epsilon
            listed = depth == self._depth(column)
        else:
            widths = [(place, mechanism.dimensions[place].widths[depth]) for place, depth in enumerate(subject)]
            listed = sum(depth > 0 for depth in subject) == 1 or isinstance(mechanism, MG)
            epsilon = mechanism.level_epsilon
        view = Joint(tuple(self._axis(column, width) for column, width in widths))
        return view, device_oracle(epsilon, view.size, listed=listed)

    def _axis(self, place: int, width: int) -> Axis:
        column = self.schema.private[place]
        if isinstance(column.domain, Numeric):
            return CellAxis(column.name, column.domain.low, column.domain.high, column.domain.cells, width)
        return CodeAxis(column.name, column.size, width)

    def _depth(self, place: int) -> int:
        """The finest level of a column that a release can list."""
        dimension = self._dimension(place)
        return max(d for d in range(1, dimension.levels) if d == 1 or dimension.nodes(d) <= MOST_SHOWN)

    def _dimension(self, place: int) -> Dimension:
        return self.schema.private[place].dimension(self.schema.fanout)

    @cached_property
    def columns(self) -> tuple[ColumnShares, ...]:
        """The shares of every column that a release has: from the first of the methods."""
        mechanism, parts = self.schema.mechanisms[0], self.schema.parts
        columns = []
        for place, column in enumerate(self.schema.private):
            width, sums = self._dimension(place).widths[self._depth(place)], None
            if isinstance(mechanism, SC):
                level: Level = (0, place, self._depth(place))
            elif isinstance(mechanism, HDG):
                level, fine = (0, place), mechanism.line_width(place)
                joined = -(-mechanism.line_cells(place) // MOST_SHOWN)
                width = fine * joined
                sums = _joined(np.arange(mechanism.line_cells(place)) // joined) if joined > 1 else None
            elif isinstance(mechanism, MG):
                level = (0, *mechanism.levels[0])
                sizes = [dimension.size for dimension in mechanism.dimensions]
                if len(sizes) > 1 or width > 1:
                    sums = _joined(np.indices(sizes)[place].reshape(-1) // width)
            else:
                level = (0, *(self._depth(place) if other == place else 0 for other in range(len(self.schema.private))))
            part = next(number for number, levels in enumerate(parts) if level in levels)
            firsts = range(0, column.size, width)
            names = (interval_name(column.domain, first, min(first + width, column.size) - 1) for first in firsts)
            columns.append(ColumnShares(column.name, part, tuple(names), parts[part].index(level), sums))
        return tuple(columns)


def _joined(groups: Ints) -> Floats:
    """The sums of the shares of each group, as rows of weights."""
    return np.asarray(np.arange(groups.max() + 1)[:, None] == groups, dtype=np.float64)


def listed_levels(schema: TableSchema) -> str:
    """The methods by which a device reports on all levels at once."""
    names = [name for name, m in zip(schema.methods, schema.mechanisms, strict=True) if isinstance(m, HI | SC)]
    return " and ".join(names)


def method_clause(method: str, columns: str, parts: int) -> str:
    """What a device reports by a method, in the words of the promise."""
    groups = f"the device's group, one of {parts}, decides" if parts > 1 else ""
    return {
        "HIO": f"It covers {columns} together, each rounded to an interval of values; {groups} how coarse the "
        "intervals are"
        if parts > 1
        else f"It covers {columns}",
        "HI": f"It covers {columns} together several times, each rounded to coarser and to finer intervals of values",
        "MG": f"It covers {columns} together" if "and" in columns else f"It covers {columns}",
        "SC": f"It covers {columns}, each for itself and several times, rounded to coarser and to finer intervals",
        "HDG": f"It covers one or two of {columns}, rounded to intervals of values; {groups} which"
        if parts > 1
        else f"It covers {columns}, rounded to an interval of values",
    }[method]


def smallest_part(parts: Sequence[LevelPart]) -> float:
    """The part of the devices that the smallest arc has."""
    return min(part.arc.share for part in parts)
