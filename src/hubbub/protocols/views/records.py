"""Views of several fields at once: the cell of a record, alone or with numbers that are sent as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Numeric
from hubbub.core.domain.numeric import check_range
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.spec import Json
from hubbub.protocols.views.basic import View
from hubbub.random.integers import GRAIN, to_grid, to_units
from hubbub.random.source import Random

MOST_CELLS = 1 << 53
"""A browser's numbers are exact up to here."""

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class CodeAxis:
    """A field with codes, grouped into intervals of `width` codes; the last code means that nothing was recorded."""

    field: str
    codes: int
    width: int = 1

    def __post_init__(self) -> None:
        _check_field(self.field)
        check_integer("codes", self.codes, 1, MOST_CELLS)
        check_integer("width", self.width, 1, self.codes)

    @property
    def size(self) -> int:
        """How many intervals there are."""
        return -(-self.codes // self.width)

    def place(self, values: Any, rng: Random | None = None) -> Codes:
        """The interval of each value."""
        last = self.codes - 1
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
            values = np.array([value if _is_integer(value) else last for value in values], dtype=np.int64)
        inside = (values >= 0) & (values <= last)
        return np.where(inside, values, last).astype(np.int64) // self.width


@dataclass(frozen=True)
class CellAxis:
    """A number, in equal cells that are grouped into intervals of `width`; a last cell means that there is no
    number.
    """

    field: str
    low: float
    high: float
    cells: int
    width: int = 1

    def __post_init__(self) -> None:
        _check_field(self.field)
        domain = Numeric(self.low, self.high, cells=self.cells)
        object.__setattr__(self, "low", domain.low)
        object.__setattr__(self, "high", domain.high)
        check_integer("width", self.width, 1, self.cells + 1)

    @property
    def size(self) -> int:
        """How many intervals there are."""
        return -(-(self.cells + 1) // self.width)

    def place(self, values: Any, rng: Random | None = None) -> Codes:
        """The interval of each value."""
        numbers, present = clipped_numbers(values, self.low, self.high)
        cells = Numeric(self.low, self.high, cells=self.cells).encode(numbers)
        return np.where(present, cells, self.cells) // self.width


@dataclass(frozen=True)
class GridAxis:
    """A number, rounded at random to one of the two nearest points of a grid, without bias; a last code is for none."""

    field: str
    low: float
    high: float
    points: int

    def __post_init__(self) -> None:
        _check_field(self.field)
        check_integer("points", self.points, 2, 1 << 16)
        low, high = check_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def size(self) -> int:
        """How many codes there are: one a point, and one for no number."""
        return self.points + 1

    def place(self, values: Any, rng: Random | None = None) -> Codes:
        """The point of each value; without `rng` the nearest one."""
        numbers, present = clipped_numbers(values, self.low, self.high)
        units = to_units(numbers, self.low, self.high, self.points - 1)
        draws = np.full(len(units), GRAIN // 2, dtype=np.uint32) if rng is None else rng.uint32(len(units))
        return np.where(present, to_grid(units, draws), self.points)


Axis = CodeAxis | CellAxis | GridAxis
_KINDS: dict[frozenset[str], type[Any]] = {
    frozenset({"field", "codes", "width"}): CodeAxis,
    frozenset({"field", "low", "high", "cells", "width"}): CellAxis,
    frozenset({"field", "low", "high", "points"}): GridAxis,
}


@dataclass(frozen=True)
class Joint(View):
    """The cell of a record in the product of several axes, one a field; the last axis varies fastest."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.axes, list | tuple) or not self.axes:
            raise InvalidValue("axes", self.axes, "at least one")
        axes = tuple(axis if isinstance(axis, Axis) else _read_axis(axis) for axis in self.axes)
        if math.prod(axis.size for axis in axes) > MOST_CELLS:
            raise InvalidValue("axes", len(axes), "at most 2^53 cells")
        object.__setattr__(self, "axes", axes)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return math.prod(axis.size for axis in self.axes)

    def spec(self) -> dict[str, Json]:
        return {"kind": "joint", "axes": [dict(vars(axis)) for axis in self.axes]}

    def __call__(self, values: Any) -> Codes:
        return self._cells(values, None)

    def look(self, values: Any, rng: Random) -> Codes:
        return self._cells(values, rng)

    def _cells(self, values: Any, rng: Random | None) -> Codes:
        cells = np.zeros(1, dtype=np.int64)
        for axis in self.axes:
            cells = cells * axis.size + axis.place(column_of(values, axis.field), rng)
        return cells


def column_of(values: Any, field: str) -> Any:
    """The values of one field, from a list of records or from columns by name."""
    if isinstance(values, Mapping) or getattr(values, "dtype", None) is not None:
        return values[field]  # columns by name, as simulations have them
    return [record.get(field) if isinstance(record, Mapping) else None for record in values]


def clipped_numbers(values: Any, low: float, high: float) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The numbers clipped to a range, and whether each value is a number; where it is not, the number is `low`."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf":
        values = [
            value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan for value in values
        ]
    numbers = np.array(values, dtype=np.float64)
    present = ~np.isnan(numbers)
    return np.clip(np.where(present, numbers, low), low, high), present


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_field(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidValue("field", name, "the name of a field")


def _read_axis(spec: Any) -> Axis:
    keys = frozenset(spec) if isinstance(spec, Mapping) else frozenset()
    if keys not in _KINDS:
        raise InvalidValue("axes", spec, "a field with codes, with cells, or with points of a grid")
    axis: Axis = _KINDS[keys](**spec)
    return axis


@dataclass(frozen=True)
class PublicNumber:
    """A field whose number is sent without randomisation, clipped to its range; NaN where nothing was recorded."""

    field: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not isinstance(self.field, str) or not self.field:
            raise InvalidValue("field", self.field, "the name of a field")
        low, high = check_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)


@dataclass(frozen=True)
class WithNumbers(View):
    """The cell of a record, which a mechanism randomises, and numbers of other fields, which are sent as they are."""

    of: Joint
    numbers: tuple[PublicNumber, ...]

    def __post_init__(self) -> None:
        spec: object = self.of
        view = spec if isinstance(spec, Joint) else View.from_spec(spec)
        if not isinstance(view, Joint):
            raise InvalidValue("of", spec, "a view of several fields")
        object.__setattr__(self, "of", view)
        if not isinstance(self.numbers, list | tuple) or not self.numbers:
            raise InvalidValue("numbers", self.numbers, "at least one")
        object.__setattr__(self, "numbers", tuple(map(_read_number, self.numbers)))

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.of.size

    @property
    def measured(self) -> int:
        """How many numbers are sent with the cell."""
        return len(self.numbers)

    def spec(self) -> dict[str, Json]:
        numbers: list[Json] = [dict(vars(number)) for number in self.numbers]
        return {"kind": "withnumbers", "of": self.of.spec(), "numbers": numbers}

    def __call__(self, values: Any) -> NDArray[Any]:
        return self._with_numbers(values, self.of(values))

    def look(self, values: Any, rng: Random) -> NDArray[Any]:
        return self._with_numbers(values, self.of.look(values, rng))

    def _with_numbers(self, values: Any, cells: NDArray[np.int64]) -> NDArray[Any]:
        rows = np.empty(len(cells), dtype=[("code", "i8"), ("measures", "f8", (self.measured,))])
        rows["code"] = cells
        for position, number in enumerate(self.numbers):
            clipped, present = clipped_numbers(column_of(values, number.field), number.low, number.high)
            rows["measures"][:, position] = np.where(present, clipped, np.nan)
        return rows


def _read_number(spec: Any) -> PublicNumber:
    if isinstance(spec, PublicNumber):
        return spec
    if not isinstance(spec, Mapping) or set(spec) != {"field", "low", "high"}:
        raise InvalidValue("numbers", spec, "a field with its range")
    return PublicNumber(**spec)
