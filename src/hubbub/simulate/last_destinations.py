"""A stream of categories that change rarely: the last destination of each aircraft, day by day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.simulate.devices import Stream
from hubbub.simulate.real_streams import OPEN, Cache, flights_stream

NOTHING_YET = -1


class CategoryStream(Stream):
    """A category for each device and step, -1 before the first, from a table and an index of its columns.

    Parameters
    ----------
    table
        A row for each step, a column for each device of the source.
    labels
        The names of the categories.
    data
        A description of the data.
    index
        The column of each device; every column once unless given.
    """

    def __init__(
        self, table: NDArray[Any], labels: Sequence[str], data: str, index: NDArray[np.int64] | None = None
    ) -> None:
        self.table, self.labels, self.data = table, tuple(labels), data
        self.index = np.arange(table.shape[1]) if index is None else index
        self.steps, self.n = len(table), self.index.size

    def values(self, step: int, start: int, stop: int) -> NDArray[Any]:
        if not 1 <= step <= len(self.table):
            raise InvalidValue("step", step, f"a step from 1 to {len(self.table)}")
        return np.asarray(self.table[step - 1][self.index[start:stop]])

    def truth(self, step: int) -> NDArray[np.float64]:
        codes = self.values(step, 0, self.n)
        return np.bincount(codes[codes >= 0], minlength=len(self.labels)) / self.n

    def resampled(self, n: int) -> CategoryStream:
        """A population of n, drawn with replacement from this one with a fixed seed."""
        if n < 1:
            raise InvalidValue("n", n, "an integer of at least 1")
        drawn = self.index[Random(seed="resampled devices").below(self.n, n)]
        return CategoryStream(self.table, self.labels, f"{self.data}, resampled to {n:,} devices", drawn)

    def moves(self) -> NDArray[np.int64]:
        """How often the category of each device changes, including its first category."""
        changed = np.diff(self.table, axis=0, prepend=np.full((1, self.table.shape[1]), NOTHING_YET, self.table.dtype))
        return np.asarray(np.count_nonzero(changed, axis=0))[self.index]


def last_destinations(*, days: int = 32, busiest: int = 15, cache: Cache = None) -> CategoryStream:
    """The last destination that each of 4,043 aircraft left New York for, at the end of each day from 1 January 2013.

    Parameters
    ----------
    days
        How many days, up to 365.
    busiest
        How many destinations have their own category: those with the most departures in the year. The last category,
        "other", is for the rest.
    cache
        As of `hubbub.data.fetch`.
    """
    year = flights_stream("dest", days=365, cache=cache)
    table = np.asarray(year.table)
    if not 1 <= busiest < len(year.labels) - 1:
        raise InvalidValue("busiest", busiest, f"an integer from 1 to {len(year.labels) - 2}")
    if not 1 <= days <= 365:
        raise InvalidValue("days", days, "an integer from 1 to 365")
    most = 1 + np.argsort(-np.bincount(table.ravel(), minlength=len(year.labels))[1:], kind="stable")[:busiest]
    category = np.full(len(year.labels), busiest, dtype=np.int8)
    category[most] = np.arange(busiest)
    category[0] = NOTHING_YET
    destinations = np.full((days, table.shape[1]), NOTHING_YET, dtype=np.int8)
    last = destinations[0].copy()
    for day, row in enumerate(destinations):
        for hour in table[day * len(OPEN) : (day + 1) * len(OPEN)]:
            last = np.where(hour, category[hour], last)
        row[:] = last
    labels = [*(year.labels[code] for code in most), "other"]
    data = f"4,043 aircraft, last destination from New York at the end of a day, {days} days of 2013"
    return CategoryStream(destinations, labels, data)
