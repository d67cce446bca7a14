"""Views: functions from a person's private value to the input of a mechanism.

Client and server share a view as JSON. A view is total: a missing or impossible value is mapped to a symbol on the
device. It never causes an error or silence, which would reveal something about the value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.domain.texts import MOST_BITS, integer_words, prefix_codes, text_words
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.plugins import PluginRefused
from hubbub.core.reports import Floats, Ints, Words
from hubbub.core.spec import Json
from hubbub.random.source import Random

_HOMES = {
    "changes": "hubbub.protocols.views.changes",
    **dict.fromkeys(("subsetcount", "subsets"), "hubbub.protocols.views.sets"),
    "prefix": "hubbub.protocols.views.basic",
    **dict.fromkeys(("held", "members", "on", "size"), "hubbub.protocols.views.sets"),
    "entries": "hubbub.protocols.views.records",
    "joint": "hubbub.protocols.views.records",
    **dict.fromkeys(("joints", "withnumbers"), "hubbub.protocols.views.records"),
    "update": "hubbub.protocols.views.update",
}
"""The modules of rarely used views, by kind: a module is loaded when an ask names one of its views."""


class View:
    """A function from values to the input of a mechanism: a frozen dataclass of plain numbers and names."""

    kinds: ClassVar[dict[str, type[View]]] = {}
    """All views by kind, which is the class name in lower case."""
    sees_sets: ClassVar[bool] = False
    """Whether the view gives a set of codes instead of one code, for mechanisms that take sets."""
    content: bytes | None = None
    """Public bytes that devices need for the view. It names them by their SHA-256, its `model`, and is signed without
    them: the server serves them by that name."""

    def __init_subclass__(cls) -> None:
        kind = cls.__name__.lower()
        home = View.kinds[kind].__module__ if kind in View.kinds else _HOMES.get(kind, cls.__module__)
        if home != cls.__module__:
            raise PluginRefused(f"{cls.__module__}.{cls.__qualname__}: the view {kind} is defined in {home}")
        View.kinds[kind] = cls

    def __call__(self, values: Values) -> Any:
        """Apply the view to a batch of values."""
        raise NotImplementedError

    def look(self, values: Values, rng: Random) -> Any:
        """Apply the view to a batch of values to answer an ask; a view that rounds numbers rounds them at random."""
        return self(values)

    @property
    def size(self) -> int | None:
        """How many different codes the view gives, where that does not depend on the field."""
        return None

    @property
    def range(self) -> tuple[float, float] | None:
        """The smallest and the largest number that the view gives; None where it gives no numbers."""
        return None

    @property
    def content_bytes(self) -> int:
        """How many bytes `content` has; 0 for views that need none."""
        return 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many different codes there are of each, where the view gives several codes; else empty."""
        return ()

    @property
    def measured(self) -> int:
        """How many numbers the view gives with a code."""
        return 0

    def spec(self) -> dict[str, Json]:
        return {"kind": type(self).__name__.lower(), **asdict(self)}  # type: ignore[call-overload]

    @staticmethod
    def from_spec(spec: object) -> View:
        """Read a view from JSON."""
        name = spec.get("kind") if isinstance(spec, Mapping) else None
        if isinstance(name, str) and name in _HOMES and name not in View.kinds:
            import_module(_HOMES[name])
        if not isinstance(spec, Mapping) or name not in View.kinds:
            raise InvalidValue("view", spec, f"an object whose kind is one of {', '.join(View.kinds)}")
        view = View.kinds[str(spec["kind"])]
        parameters = {key: value for key, value in spec.items() if key != "kind"}
        expected = {field.name for field in fields(view)}  # type: ignore[arg-type]
        if set(parameters) != expected:
            raise InvalidValue("view", sorted(parameters), f"exactly the fields {sorted(expected)}")
        return view(**parameters)


@dataclass(frozen=True)
class Whole(View):
    """The value itself, which is already a code."""

    def __call__(self, values: Values) -> Any:
        return values


@dataclass(frozen=True)
class Field(View):
    """One field of a record; None for a record without that field.

    Example:
        >>> Field("age")([{"age": 4}, {}])
        [4, None]
        >>> Field("age")({"age": np.array([4, 5])}).tolist()
        [4, 5]
    """

    name: str

    def __call__(self, values: Values) -> Any:
        if isinstance(values, Mapping):
            return values[self.name]
        return [record.get(self.name) for record in values]


@dataclass(frozen=True)
class Clipped(View):
    """A number clipped to a range; NaN counts as the lower end."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InvalidValue("high", self.high, f"a finite number above low = {self.low}")

    @property
    def range(self) -> tuple[float, float]:
        """The ends that numbers are clipped to."""
        return self.low, self.high

    def __call__(self, values: Values) -> Floats:
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
        return np.clip(np.where(np.isnan(numbers), self.low, numbers), self.low, self.high)


@dataclass(frozen=True)
class Binned(View):
    """The index of the cell that a number falls in; the borders of the cells grow by a constant factor from `first`.

    Cell 0 holds everything below `first`, the last cell everything from its lower border on.
    """

    first: float
    factor: float
    cells: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.first) and self.first > 0):
            raise InvalidValue("first", self.first, "a finite number above 0")
        if not (math.isfinite(self.factor) and self.factor > 1):
            raise InvalidValue("factor", self.factor, "a finite number above 1")
        if isinstance(self.cells, bool) or not isinstance(self.cells, int) or not 2 <= self.cells <= 1 << 16:
            raise InvalidValue("cells", self.cells, "an integer from 2 to 65536")

    @property
    def borders(self) -> Floats:
        """The lower borders of all cells but the first."""
        return self.first * np.power(self.factor, np.arange(self.cells - 1, dtype=np.float64))

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.cells

    @property
    def range(self) -> tuple[float, float]:
        """The numbers of the first and of the last cell, for a mechanism that reads numbers."""
        return 0.0, self.cells - 1.0

    def __call__(self, values: Values) -> Ints:
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
        return np.searchsorted(self.borders, np.where(np.isnan(numbers), 0.0, numbers), side="right")


@dataclass(frozen=True)
class Among(View):
    """The place of a code in a list of candidate codes; the length of the list for any other code."""

    codes: tuple[int, ...]

    def __post_init__(self) -> None:
        codes = self.codes
        if not isinstance(codes, list | tuple) or not 1 <= len(codes) <= 1 << 16:
            raise InvalidValue("codes", codes, "from 1 to 65536 codes")
        for code in codes:
            if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code < 1 << 53:
                raise InvalidValue("codes", code, "integers from 0 to 2^53-1")
        if any(a >= b for a, b in pairwise(codes)):
            raise InvalidValue("codes", codes, "codes in ascending order, all different")
        object.__setattr__(self, "codes", tuple(codes))

    @property
    def size(self) -> int:
        """How many symbols there are: the codes, and one for all others."""
        return len(self.codes) + 1

    def spec(self) -> dict[str, Json]:
        return {"kind": "among", "codes": list(self.codes)}

    def __call__(self, values: Values) -> Ints:
        batch, codes = np.atleast_1d(np.asarray(values, dtype=np.int64)), np.array(self.codes, dtype=np.int64)
        places = np.minimum(np.searchsorted(codes, batch), len(codes) - 1)
        return np.where(codes[places] == batch, places, len(codes))


_WORD = 64


@dataclass(frozen=True)
class Prefix(View):
    """The code of the first `bits` bits of a value that has `of` bits, as `core/domain/texts.py` writes them.

    The value is a text of at most of/8 bytes, or an integer below 2^of where `of` is at most 64. Any other value counts
    as the string of ones.
    """

    bits: int
    of: int

    def __post_init__(self) -> None:
        check_integer("of", self.of, 1, MOST_BITS)
        check_integer("bits", self.bits, 1, self.of)

    def __call__(self, values: Values) -> Words:
        return prefix_codes(self.words(values), self.bits)

    def words(self, values: Values) -> Words:
        """The values as strings of all their bits."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and self.of <= _WORD:
            return integer_words(values, self.of)
        batch = list(values)
        if batch and self.of <= _WORD and all(isinstance(value, int | np.integer) for value in batch):
            ones = (1 << self.of) - 1
            fitting = [value if 0 <= value <= ones else ones for value in batch]
            return integer_words(np.array(fitting, dtype=np.uint64), self.of)
        return text_words(batch, self.of)
