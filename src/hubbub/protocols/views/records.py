"""Views of several fields at once: the cell of a record, alone or with numbers sent as they are; entries of 0 and 1."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Numeric, Values
from hubbub.core.domain.numeric import check_range
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Array, Bools, Floats, Ints
from hubbub.core.spec import Json
from hubbub.mechanisms.ternary.vectors import MOST_DIMENSION
from hubbub.protocols.views.basic import View
from hubbub.protocols.views.sets import Members
from hubbub.random.integers import GRAIN, to_grid, to_units
from hubbub.random.source import Random

MOST_CELLS = 1 << 53
"""A browser's numbers are exact up to here."""


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

    def place(self, values: Values, rng: Random | None = None) -> Ints:
        """The interval of each value."""
        last = self.codes - 1
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
            values = np.array([value if _is_integer(value) else last for value in values], dtype=np.int64)
        inside = (values >= 0) & (values <= last)
        return np.where(inside, values, last).astype(np.int64) // self.width


@dataclass(frozen=True)
class CellAxis:
    """A number, in equal cells grouped into intervals of `width`; the last cell means: no number."""

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

    def place(self, values: Values, rng: Random | None = None) -> Ints:
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

    def place(self, values: Values, rng: Random | None = None) -> Ints:
        """The point of each value; without `rng` the nearest one."""
        numbers, present = clipped_numbers(values, self.low, self.high)
        units = to_units(numbers, self.low, self.high, self.points - 1)
        draws = np.full(len(units), GRAIN // 2, dtype=np.uint32) if rng is None else rng.uint32(len(units))
        return np.where(present, to_grid(units, draws), self.points)


@dataclass(frozen=True)
class FieldBits:
    """A field as entries that are 0 or 1.

    `reads`: "bit": one entry, whether the code is 1. "code": an entry for each code. "items": an entry for each item of
    a set. Where nothing was recorded, all entries are 0.
    """

    field: str
    reads: str
    entries: int

    def __post_init__(self) -> None:
        _check_field(self.field)
        if self.reads not in ("bit", "code", "items"):
            raise InvalidValue("reads", self.reads, "bit, code or items")
        check_integer("entries", self.entries, 1, 1 if self.reads == "bit" else MOST_DIMENSION)

    def place(self, values: Values) -> NDArray[np.int8]:
        """A row of entries for each value."""
        if self.reads == "items":
            return Members(self.entries)([items if isinstance(items, tuple | list) else () for items in values])
        codes = CodeAxis(self.field, 3 if self.reads == "bit" else self.entries + 1).place(values)
        ones = np.ones(1, np.int64) if self.reads == "bit" else np.arange(self.entries)
        return np.equal(codes[:, None], ones).astype(np.int8)


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

    def __call__(self, values: Values) -> Ints:
        return self._cells(values, None)

    def look(self, values: Values, rng: Random) -> Ints:
        return self._cells(values, rng)

    def _cells(self, values: Values, rng: Random | None) -> Ints:
        cells = np.zeros(1, dtype=np.int64)
        for axis in self.axes:
            cells = cells * axis.size + axis.place(column_of(values, axis.field), rng)
        return cells


@dataclass(frozen=True)
class Joints(View):
    """The cells of a record in several products of axes, for a bundle of reports."""

    of: tuple[Joint, ...]

    def __post_init__(self) -> None:
        specs: object = self.of
        if not isinstance(specs, list | tuple) or len(specs) < 2:
            raise InvalidValue("of", specs, "at least two views of several fields")
        views = tuple(view if isinstance(view, View) else View.from_spec(view) for view in specs)
        if not all(isinstance(view, Joint) for view in views):
            raise InvalidValue("of", specs, "views of several fields")
        object.__setattr__(self, "of", views)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(view.size for view in self.of)

    def spec(self) -> dict[str, Json]:
        return {"kind": "joints", "of": [view.spec() for view in self.of]}

    def __call__(self, values: Values) -> Ints:
        return np.stack([view(values) for view in self.of], axis=1)

    def look(self, values: Values, rng: Random) -> Ints:
        return np.stack([view.look(values, rng) for view in self.of], axis=1)


@dataclass(frozen=True)
class Entries(View):
    """Several fields as one row of 0 and 1, field by field."""

    fields: tuple[FieldBits, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.fields, list | tuple) or not self.fields:
            raise InvalidValue("fields", self.fields, "at least one")
        read = tuple(part if isinstance(part, FieldBits) else _read_bits(part) for part in self.fields)
        object.__setattr__(self, "fields", read)

    def spec(self) -> dict[str, Json]:
        return {"kind": "entries", "fields": [dict(vars(part)) for part in self.fields]}

    def __call__(self, values: Values) -> NDArray[np.int8]:
        return np.concatenate([part.place(column_of(values, part.field)) for part in self.fields], axis=1)


def _read_bits(spec: Any) -> FieldBits:
    if not isinstance(spec, Mapping) or set(spec) != {"field", "reads", "entries"}:
        raise InvalidValue("fields", spec, "a field with what is read of it and its number of entries")
    return FieldBits(**spec)


def column_of(values: Values, field: str) -> Any:
    """The values of one field, from a list of records or from columns by name."""
    if isinstance(values, Mapping) or getattr(values, "dtype", None) is not None:
        return values[field]  # columns by name, as simulations have them
    return [record.get(field) if isinstance(record, Mapping) else None for record in values]


def clipped_numbers(values: Values, low: float, high: float) -> tuple[Floats, Bools]:
    """The numbers clipped to a range, and whether each value is a number; where it is not, the number is `low`."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf":
        values = [
            value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan for value in values
        ]
    numbers = np.array(values, dtype=np.float64)
    present = ~np.isnan(numbers)
    return np.clip(np.where(present, numbers, low), low, high), present


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_field(name: object) -> None:
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
    """The cells of a record, which a mechanism randomises, and numbers of other fields, which are sent as they are."""

    of: Joint | Joints
    numbers: tuple[PublicNumber, ...]

    def __post_init__(self) -> None:
        spec: object = self.of
        view = spec if isinstance(spec, Joint | Joints) else View.from_spec(spec)
        if not isinstance(view, Joint | Joints):
            raise InvalidValue("of", spec, "a view of several fields")
        object.__setattr__(self, "of", view)
        if not isinstance(self.numbers, list | tuple) or not self.numbers:
            raise InvalidValue("numbers", self.numbers, "at least one")
        object.__setattr__(self, "numbers", tuple(map(_read_number, self.numbers)))

    @property
    def size(self) -> int | None:
        """How many cells there are, of one product of axes."""
        return self.of.size

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.of.sizes

    @property
    def measured(self) -> int:
        """How many numbers are sent with the cell."""
        return len(self.numbers)

    def spec(self) -> dict[str, Json]:
        numbers: list[Json] = [dict(vars(number)) for number in self.numbers]
        return {"kind": "withnumbers", "of": self.of.spec(), "numbers": numbers}

    def __call__(self, values: Values) -> Array:
        return self._with_numbers(values, self.of(values))

    def look(self, values: Values, rng: Random) -> Array:
        return self._with_numbers(values, self.of.look(values, rng))

    def _with_numbers(self, values: Values, cells: Ints) -> Array:
        rows = np.empty(len(cells), dtype=[("code", "i8", cells.shape[1:]), ("measures", "f8", (self.measured,))])
        rows["code"] = cells
        for position, number in enumerate(self.numbers):
            clipped, present = clipped_numbers(column_of(values, number.field), number.low, number.high)
            rows["measures"][:, position] = np.where(present, clipped, np.nan)
        return rows


def _read_number(spec: object) -> PublicNumber:
    if isinstance(spec, PublicNumber):
        return spec
    if not isinstance(spec, Mapping) or set(spec) != {"field", "low", "high"}:
        raise InvalidValue("numbers", spec, "a field with its range")
    return PublicNumber(**spec)
