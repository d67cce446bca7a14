"""Streams of events: at most steps a device has no event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.simulate.devices import Stream

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
        A description of the data, for a note beside the results.
    dropped, repeated
        How many events of the source have no device; and how many were replaced by a later event of the same device in
        the same step.
    index
        The column of each device; unless given, every column once, in a fixed random order.
    """

    def __init__(
        self,
        table: NDArray[Any],
        labels: Sequence[str],
        data: str,
        *,
        dropped: int = 0,
        repeated: int = 0,
        index: NDArray[np.int64] | None = None,
    ) -> None:
        self.table, self.labels, self.data = table, tuple(labels), data
        self.dropped, self.repeated = dropped, repeated
        self.index = Random(seed="order of the devices").permutation(table.shape[1]) if index is None else index
        self.steps, self.n = len(table), self.index.size

    @property
    def domain(self) -> int | None:
        """How many codes there are; None for numbers."""
        return len(self.labels) or None

    def values(self, step: int, start: int, stop: int) -> NDArray[Any]:
        return np.asarray(self._row(step)[self.index[start:stop]])

    def truth(self, step: int) -> NDArray[np.float64]:
        row = self.values(step, 0, self.n)
        return np.array([row.mean()]) if self.domain is None else np.bincount(row, minlength=self.domain) / self.n

    def _row(self, step: int) -> NDArray[Any]:
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
        """At most so many steps, from step `after` + 1 on."""
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
        self,
        index: NDArray[np.int64],
        data: str,
        table: NDArray[Any] | None = None,
        labels: Sequence[str] | None = None,
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
    shape: tuple[int, int],
    step: NDArray[np.int64],
    device: NDArray[np.int64],
    value: NDArray[np.int64],
    dtype: type[np.unsignedinteger[Any]],
) -> tuple[NDArray[Any], int]:
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
