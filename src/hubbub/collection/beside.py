"""A view of a record's cell, which is randomised, with numbers beside it, which are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.joint import Joint, clipped_numbers, column_of
from hubbub.core.domain.numeric import check_range
from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.core.spec import Json
from hubbub.protocols.view import View


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
class Beside(View):
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
        """How many numbers stand beside the cell."""
        return len(self.numbers)

    def spec(self) -> dict[str, Json]:
        numbers: list[Json] = [dict(vars(number)) for number in self.numbers]
        return {"kind": "beside", "of": self.of.spec(), "numbers": numbers}

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
