"""The domain of key-value data: each person holds a few of many keys, and one number for each key held."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Domain
from hubbub.core.domain.categorical import Categorical
from hubbub.core.domain.numeric import check_range
from hubbub.core.errors import InvalidValue, check_integer

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

    def code(self, value: Any) -> tuple[tuple[int, float], ...]:
        return self.pairs(value)

    def missing(self) -> tuple[tuple[int, float], ...]:
        return ()

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {key: position for position, key in enumerate(self.keys)}

    def pairs(self, value: Any) -> tuple[tuple[int, float], ...]:
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

    def encode(self, values: Any) -> NDArray[np.float64]:
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


def _key_numbers(value: Any) -> list[tuple[Any, Any]]:
    """The keys and numbers of a mapping or of a list of pairs, not yet checked."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidValue("values", value, _PAIRS)
    pairs = list(value)
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise InvalidValue("values", value, _PAIRS)
    return [(pair[0], pair[1]) for pair in pairs]
