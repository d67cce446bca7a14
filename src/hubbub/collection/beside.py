"""A view of a record's cell together with numbers that are sent as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.joint import Joint, column_of, numbers_of
from hubbub.core.domain.numeric import check_range
from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.core.spec import Json
from hubbub.protocols.view import View


@dataclass(frozen=True)
class PublicNumber:
    """A field whose number is sent as it is, moved into its range; NaN where nothing was recorded.

    Example:
        >>> PublicNumber("price", low=0, high=100).low
        0.0
    """

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
    """The cell of a record, which a mechanism randomises, and beside it numbers that it does not.

    Example:
        >>> from hubbub.collection.joint import CodeAxis
        >>> view = Beside(Joint((CodeAxis("os", codes=3),)), (PublicNumber("price", low=0.0, high=9.0),))
        >>> seen = view([{"os": 1, "price": 20.0}, {"os": 2}])
        >>> seen["code"].tolist(), seen["measures"].tolist(), view.size
        ([1, 2], [[9.0], [nan]], 3)
        >>> View.from_spec(view.spec()) == view
        True
    """

    of: Joint
    numbers: tuple[PublicNumber, ...]

    def __post_init__(self) -> None:
        given: object = self.of
        read = given if isinstance(given, Joint) else View.from_spec(given)
        if not isinstance(read, Joint):
            raise InvalidValue("of", given, "a view of several fields")
        object.__setattr__(self, "of", read)
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
        made = np.empty(len(cells), dtype=[("code", "i8"), ("measures", "f8", (self.measured,))])
        made["code"] = cells
        for place, number in enumerate(self.numbers):
            inside, known = numbers_of(column_of(values, number.field), number.low, number.high)
            made["measures"][:, place] = np.where(known, inside, np.nan)
        return made


def _read_number(given: Any) -> PublicNumber:
    if isinstance(given, PublicNumber):
        return given
    if not isinstance(given, Mapping) or set(given) != {"field", "low", "high"}:
        raise InvalidValue("numbers", given, "a field with its range")
    return PublicNumber(**given)
