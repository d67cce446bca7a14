"""Streams of values of simulated devices, and their true shares or means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Floats, Ints
from hubbub.data.synthetic import normals
from hubbub.random.source import Random


class Stream(ABC):
    """The values of n devices over time. The order of the devices is fixed; similar ones must not be side by side."""

    n: int
    steps: int | None
    """How many steps there are; None for a stream without end."""

    @abstractmethod
    def values(self, step: int, start: int, stop: int) -> Any:
        """The values of the devices start to stop-1 at a step, counted from 1: an array, or `ItemSets`."""

    @abstractmethod
    def truth(self, step: int) -> Floats:
        """The true shares, or the true mean, of the population at a step."""


class ArrayStream(Stream):
    """A stream from an array of steps by devices; a memory-mapped array is read as it is needed.

    `table`: a row for each step, a column for each device: codes from 0 to domain-1, or numbers if `domain` is None.
    `domain`: how many codes there are.
    """

    def __init__(self, table: Array, domain: int | None = None) -> None:
        if table.ndim != 2 or 0 in table.shape:
            raise InvalidValue("table", table.shape, "a row for each step, a column for each device")
        self.table, self.domain = table, domain
        self.steps, self.n = table.shape

    def values(self, step: int, start: int, stop: int) -> Array:
        return np.asarray(self._row(step)[start:stop])

    def truth(self, step: int) -> Floats:
        row = self._row(step)
        if self.domain is None:
            return np.array([row.mean()])
        return np.bincount(row, minlength=self.domain) / self.n

    def _row(self, step: int) -> Array:
        if not 1 <= step <= len(self.table):
            raise InvalidValue("step", step, f"a step from 1 to {len(self.table)}")
        return np.asarray(self.table[step - 1])


def binary_stream(process: Floats, n: int, rng: Random) -> ArrayStream:
    """At step t exactly round(p_t n) of n devices, drawn anew at random, have the value 1 and the others 0."""
    table = np.zeros((len(process), n), dtype=np.uint8)
    for row, p in zip(table, process, strict=True):
        ones = round(float(p) * n)
        if ones:
            keys = rng.uint64(n)
            row[np.argpartition(keys, ones - 1)[:ones]] = 1
    return ArrayStream(table, domain=2)


def normal_stream(process: Floats, n: int, rng: Random, *, deviation: float = 10.0) -> ArrayStream:
    """At step t every device has a normally distributed number of mean p_t."""
    table = np.empty((len(process), n), dtype=np.float32)
    for row, p in zip(table, process, strict=True):
        row[:] = p + deviation * normals(n, rng)
    return ArrayStream(table)


NONE = "none"
"""The value of a device without an event."""

RESAMPLED = 100_000


class EventStream(Stream):
    """A stream from a table of steps by devices of the source, and an index of the table's columns.

    The order of the devices is random: devices of a cohort are neighbours on the circle, and must not be similar.

    Parameters
    ----------
    table
        A row for each step, a column for each device of the source: codes of `labels`, or numbers if there are none.
    labels
        The meaning of the codes; code 0 is "none".
    data
        A description of the data, for a note next to the results.
    dropped, repeated
        How many events of the source have no device; and how many were replaced by a later event of the same device in
        the same step.
    index
        The column of each device; unless given, every column once, in a fixed random order.
    """

    def __init__(
        self,
        table: Array,
        labels: Sequence[str],
        data: str,
        *,
        dropped: int = 0,
        repeated: int = 0,
        index: Ints | None = None,
    ) -> None:
        self.table, self.labels, self.data = table, tuple(labels), data
        self.dropped, self.repeated = dropped, repeated
        self.index = Random(seed="order of the devices").permutation(table.shape[1]) if index is None else index
        self.steps, self.n = len(table), self.index.size

    @property
    def domain(self) -> int | None:
        """How many codes there are; None for numbers."""
        return len(self.labels) or None

    def values(self, step: int, start: int, stop: int) -> Array:
        return np.asarray(self._row(step)[self.index[start:stop]])

    def truth(self, step: int) -> Floats:
        row = self.values(step, 0, self.n)
        return np.array([row.mean()]) if self.domain is None else np.bincount(row, minlength=self.domain) / self.n

    def _row(self, step: int) -> Array:
        if not 1 <= step <= len(self.table):
            raise InvalidValue("step", step, f"a step from 1 to {len(self.table)}")
        return np.asarray(self.table[step - 1])

    def resampled(self, n: int = RESAMPLED) -> EventStream:
        """A population of n, drawn with replacement from this one with a fixed seed."""
        if n < 1:
            raise InvalidValue("n", n, "an integer of at least 1")
        drawn = self.index[Random(seed="resampled devices").below(self.n, n)]
        return self._with(drawn, f"{self.data}, resampled to {n:,} devices")

    def shuffled(self, rng: Random, n: int | None = None) -> EventStream:
        """The devices in a new random order, and so in other cohorts; only the first n if given."""
        if n is not None and not 1 <= n <= self.n:
            raise InvalidValue("n", n, f"an integer from 1 to {self.n}")
        return self._with(self.index[rng.permutation(self.n)[:n]], self.data)

    def first(self, steps: int, *, after: int = 0) -> EventStream:
        """The steps, up to a given number, from step `after` + 1 on."""
        if steps < 1:
            raise InvalidValue("steps", steps, "an integer of at least 1")
        if not 0 <= after < len(self.table):
            raise InvalidValue("after", after, f"an integer from 0 to {len(self.table) - 1}")
        data = f"{self.data}, from step {after + 1}" if after else self.data
        return self._with(self.index, data, self.table[after : after + steps])

    def busy(self) -> EventStream:
        """The stream with two codes: whether a device has any event or none."""
        binary = (np.asarray(self.table) != 0).view(np.uint8)
        return self._with(self.index, f"{self.data}, any event or none", binary, (NONE, "any"))

    def _with(
        self, index: Ints, data: str, table: Array | None = None, labels: Sequence[str] | None = None
    ) -> EventStream:
        return EventStream(
            self.table if table is None else table,
            self.labels if labels is None else labels,
            data,
            dropped=self.dropped,
            repeated=self.repeated,
            index=index,
        )


def event_table(
    shape: tuple[int, int], step: Ints, device: Ints, value: Ints, dtype: type[np.unsignedinteger[Any]]
) -> tuple[Array, int]:
    """Events, in order of time, as a table of steps by devices; and how many a later event of the cell replaced.

    Example:
        >>> event_table((2, 2), np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([7, 8, 9]), np.uint8)
        (array([[0, 8],
               [9, 0]], dtype=uint8), 1)
    """
    cell = step * shape[1] + device
    table = np.zeros(shape, dtype=dtype)
    last = cell.size - 1 - np.unique(cell[::-1], return_index=True)[1]
    table.ravel()[cell[last]] = value[last]
    return table, cell.size - last.size


class SetStream(Stream):
    """The set of each person, the same at every step.

    `people`: the sets; similar people must not be side by side.

    Example:
        >>> stream = SetStream(ItemSets([0, 2, 2, 3], [4, 0, 4], domain=5))
        >>> stream.n, stream.values(1, 0, 2).sizes.tolist(), stream.truth(1).round(2).tolist()
        (3, [2, 0], [0.33, 0.0, 0.0, 0.0, 0.67])
    """

    steps = None

    def __init__(self, people: ItemSets) -> None:
        self.people, self.n = people, len(people)

    def values(self, step: int, start: int, stop: int) -> ItemSets:
        return self.people[slice(start, stop)]

    def truth(self, step: int) -> Floats:
        return self.people.support() / self.n
