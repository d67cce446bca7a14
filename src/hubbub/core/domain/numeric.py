"""The domain of the numbers of a range, and that of key-value data."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import ClassVar

import numpy as np

from hubbub.core.domain.base import Categorical, Domain, Values, as_array
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Floats, Ints

MOST_CELLS = 1 << 20
_MOST_NUMBER = 1e300  # the width of a range must be a float too


def check_range(low: object, high: object) -> tuple[float, float]:
    """The two ends of a range as floats; refused unless they are finite numbers and low is below high."""
    ends = []
    for field, number in (("low", low), ("high", high)):
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= _MOST_NUMBER:
            raise InvalidValue(field, number, f"a number of at most {_MOST_NUMBER:g}")
        ends.append(float(number))  # JSON does not tell 1e17 from an integer, and the spec's id would
    if not ends[0] < ends[1]:
        raise InvalidValue("high", ends[1], f"a number above low = {ends[0]}")
    return ends[0], ends[1]


@dataclass(frozen=True)
class Numeric(Domain):
    """Numbers from low to high, divided into cells of equal width. The code of a number is its cell.

    Example:
        >>> Numeric(0.0, 10.0, cells=5).encode([0.0, 1.9, 2.0, 10.0]).tolist()
        [0, 0, 1, 4]
    """

    kind: ClassVar[str] = "numeric"
    low: float
    high: float
    cells: int

    def __post_init__(self) -> None:
        low, high = check_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        check_integer("cells", self.cells, 2, MOST_CELLS)

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many cells there are."""
        return self.cells

    @property
    def edges(self) -> Floats:
        """The borders of the cells."""
        return np.linspace(self.low, self.high, self.cells + 1)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"{low:g} to {high:g}" for low, high in pairwise(self.edges))

    def symbol_labels(self) -> tuple[str, ...]:
        return self.labels  # a device that recorded no number reports the lower end

    def describe(self) -> str:
        return f"{self.low:g} to {self.high:g}, in {self.cells:,} cells"

    def code(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise InvalidValue("value", value, "a finite number")
        return float(value)

    def missing(self) -> float:
        return self.low

    def absent(self) -> None:
        return None

    def _value(self, code: int) -> float:
        width = (self.high - self.low) / self.cells
        return self.low + (code + 0.5) * width

    def encode(self, values: Values) -> Ints:
        numbers = as_array(values)
        if numbers.size == 0:
            return np.empty(0, dtype=np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
            raise InvalidValue("values", values, "a one-dimensional batch of numbers")
        outside = ~((numbers >= self.low) & (numbers <= self.high))
        if outside.any():
            raise InvalidValue("values", numbers[outside][0].item(), f"numbers from {self.low} to {self.high}")
        cells = np.searchsorted(self.edges, numbers, side="right") - 1
        return np.minimum(cells, self.cells - 1).astype(np.int64)


MOST_KEYS = 1 << 16
_PAIRS = "a mapping of keys to numbers, or pairs of them"


@dataclass(frozen=True)
class KeyValue(Domain):
    """Mappings from at most `most` of the keys to numbers. A number outside the range is moved to its nearer end.

    A key that is not in the mapping is not held, which differs from a key held with the number 0. Each mapping is
    encoded as a row of pairs (position of the key, number) in the order of the keys, padded with -1.

    Parameters
    ----------
    keys
        The names of the keys.
    low, high
        The range of the numbers.
    most
        How many keys one person may hold.

    Example:
        >>> ratings = KeyValue(["alien", "brazil", "casablanca"], low=1, high=5, most=2)
        >>> ratings.encode([{"casablanca": 5, "alien": 3.5}, {}]).tolist()
        [[[0.0, 3.5], [2.0, 5.0]], [[-1.0, -1.0], [-1.0, -1.0]]]
        >>> ratings.pairs([("alien", 3), ("alien", 4)])
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: values: got 'alien'; allowed: keys that differ from each other
    """

    kind: ClassVar[str] = "keyvalue"
    keys: tuple[str, ...]
    low: float
    high: float
    most: int
    size = None
    in_order = False

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "keys", Categorical(self.keys).names)
        except InvalidValue as error:
            raise InvalidValue("keys", error.value, error.allowed) from None
        if len(self.keys) > MOST_KEYS:
            raise InvalidValue("keys", len(self.keys), f"at most {MOST_KEYS} of them")
        low, high = check_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        check_integer("most", self.most, 1, len(self.keys))

    @property
    def labels(self) -> tuple[str, ...]:
        return self.keys

    @property
    def listed(self) -> tuple[str, ...]:
        return self.keys

    def describe(self) -> str:
        return f"numbers from {self.low:g} to {self.high:g} for at most {self.most} of {len(self.keys):,} keys"

    def code(self, value: object) -> tuple[tuple[int, float], ...]:
        return self.pairs(value)

    def missing(self) -> tuple[tuple[int, float], ...]:
        return ()

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {key: position for position, key in enumerate(self.keys)}

    def pairs(self, value: object) -> tuple[tuple[int, float], ...]:
        """One mapping as pairs (position of the key, number), in the order of the keys; other mappings are refused.

        Example:
            >>> KeyValue(["a", "b"], low=0, high=1, most=1).pairs({"b": 0.5})
            ((1, 0.5),)
        """
        numbers: dict[int, float] = {}
        for key, number in _key_numbers(value):
            position = self._positions.get(key) if isinstance(key, str) else None
            if position is None:
                few = ", ".join(self.keys[:5]) + (", ..." if len(self.keys) > 5 else "")
                raise InvalidValue("values", key, f"keys such as {few}")
            if position in numbers:
                raise InvalidValue("values", key, "keys that differ from each other")
            if isinstance(number, bool) or not isinstance(number, int | float | np.integer | np.floating):
                raise InvalidValue("values", {key: number}, "a finite number for every key")
            if not math.isfinite(number):
                raise InvalidValue("values", {key: number}, "a finite number for every key")
            numbers[position] = float(number)
        if len(numbers) > self.most:
            raise InvalidValue("values", f"{len(numbers)} keys", f"at most {self.most} keys")
        return tuple(sorted(numbers.items()))

    def encode(self, values: Values) -> Floats:
        if isinstance(values, Mapping | str | bytes) or not isinstance(values, Iterable):
            raise InvalidValue("values", values, "a batch of mappings")
        rows = [self.pairs(value) for value in values]
        out = np.full((len(rows), self.most, 2), -1.0)
        for row, pairs in enumerate(rows):
            if pairs:
                out[row, : len(pairs)] = pairs
        return out

    def examples(self, most: int) -> list[dict[str, float]]:
        ends = (self.low, self.high)
        key_sets = [self.keys[start : start + self.most] for start in range(min(most, len(self.keys)))]
        return [{key: ends[(start + k) % 2] for k, key in enumerate(keys)} for start, keys in enumerate(key_sets)]


def _key_numbers(value: object) -> list[tuple[object, object]]:
    """The keys and numbers of a mapping or of a list of pairs, not yet checked."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidValue("values", value, _PAIRS)
    pairs = list(value)
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise InvalidValue("values", value, _PAIRS)
    return [(pair[0], pair[1]) for pair in pairs]
