"""Streams of real events, with a step for each hour: aircraft, taxi trips, and flights.

Where the data names devices, these are the devices of the stream. Otherwise the events are assigned to *synthetic
devices* at random with a fixed seed, and the stream's description says so. A device without an event in a step has the
value "none", or 0.

These streams replace the Taxi, Foursquare, Taobao and Taobao-Price of LDP-IDS (section 7.1.2), which are in no package:
results on them are results on other data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.data.catalog import CATALOG
from hubbub.data.packages import CachedTable, cached_table
from hubbub.data.records import Table, flights
from hubbub.data.trips import flights3m, taxi
from hubbub.random.source import Random
from hubbub.simulate.devices import NONE, EventStream, Stream, event_table

OPEN = range(5, 24)
"""The hours in which flights leave New York: 19 steps a day."""
CENTRE = (-8_235_700.0, 4_976_100.0)
"""The point where the four quarters of the taxi stream meet, in Web-Mercator metres: about the median pickup."""
QUARTERS = ("south-west", "south-east", "north-west", "north-east")
BUSIEST = 20
"""How many airports of the flights of 2001 have their own code."""
_HOUR = np.timedelta64(1, "h")
_FORM = 1  # the version of the tables: if it changes, they are made again
Cache = str | os.PathLike[str] | None
Codes = tuple[NDArray[np.int64], list[str]]


def flights_stream(by: Literal["carrier", "dest"] = "carrier", *, days: int = 42, cache: Cache = None) -> EventStream:
    """The carrier or destination of the departure from New York City planned in an hour, for 4,043 aircraft in 2013.

    A day has 19 steps, 5 to 23 o'clock local time; 42 days are 798 steps, from 1 January. The table covers the year.
    `dropped` counts the year's 2,512 flights without a tail number. A cancelled flight counts as planned.

    There are 16 carriers, and 104 destinations (flights to the 105th have no tail number); up to 365 days.
    """
    if by not in ("carrier", "dest"):
        raise InvalidValue("by", by, "carrier or dest")
    check_integer("days", days, 1, 365)

    def make() -> CachedTable:
        year = flights(cache=cache)
        known = year["tailnum"] != "NA"
        # The local day of the year: time_hour is UTC.
        months = np.array([f"2013-{month:02d}-01" for month in range(1, 13)], dtype="datetime64[D]")
        day = (months[year["month"] - 1] - months[0]).astype(np.int64) + year["day"] - 1
        order = np.lexsort((year["minute"], year["hour"], day))
        order = order[known[order]]
        names, codes = np.unique(year[by][order], return_inverse=True)
        aircraft, device = np.unique(year["tailnum"][order], return_inverse=True)
        step = day[order] * len(OPEN) + year["hour"][order] - OPEN[0]
        table, repeated = event_table((365 * len(OPEN), aircraft.size), step, device, codes + 1, np.uint8)
        return table, {"labels": [NONE, *names.tolist()], "dropped": int((~known).sum()), "repeated": repeated}

    table, facts = cached_table(f"flights-{CATALOG['flights'].version}-{by}-{_FORM}", make, cache=cache)
    what = "carrier" if by == "carrier" else "destination"
    data = f"4,043 aircraft, {what} of the departure from New York planned in an hour, {days} days of 2013"
    return EventStream(table[: days * len(OPEN)], data=data, **facts)


def taxi_stream(n_devices: int = 2_000, *, cache: Cache = None) -> EventStream:
    """The quarter of New York City in which each synthetic device was picked up in an hour of January 2015: 744 steps.

    50,000 trips are assigned to the devices: 25 in the month to each of 2,000.
    """

    def quarters(trips: Table) -> Codes:
        east, north = trips["pickup_x"] >= CENTRE[0], trips["pickup_y"] >= CENTRE[1]
        return 1 + east + 2 * north, [NONE, *QUARTERS]

    return _taxi("quarter of the pickup in an hour", quarters, n_devices, np.uint8, cache)


def fares_stream(n_devices: int = 2_000, *, cache: Cache = None) -> EventStream:
    """The fare in cents that each synthetic device of `taxi_stream` paid in an hour: 0 without a trip, 40,000 at most.

    The 16 fares below 0 count as 0.
    """

    def cents(trips: Table) -> Codes:
        return np.rint(np.maximum(trips["fare_amount"], 0.0) * 100).astype(np.int64), []

    return _taxi("fare in cents, 0 without a trip in an hour", cents, n_devices, np.uint16, cache)


def flights3m_stream(n_devices: int = 20_000, *, days: int = 33, cache: Cache = None) -> EventStream:
    """The airport from which each synthetic device left in an hour of 2001: one of the 20 busiest, or "other".

    33 days are 792 steps, from 1 January; to each of 20,000 devices fall 27 of their flights.

    There are up to 181 days; flights are assigned to `n_devices`.
    """

    def airports(flown: Table) -> Codes:
        labels, codes = flown.codes("origin")
        busiest = np.argsort(-np.bincount(codes), kind="stable")[:BUSIEST]
        place = np.full(labels.size, BUSIEST + 1)
        place[busiest] = 1 + np.arange(BUSIEST)
        return place[codes], [NONE, *labels[busiest].tolist(), "other"]

    return _flights3m("airport of departure in an hour", airports, n_devices, days, np.uint8, cache)


def flights3m_delays(
    n_devices: int = 20_000, *, days: int = 33, latest: bool = False, cache: Cache = None
) -> EventStream:
    """The minutes by which each synthetic device of `flights3m_stream` was late: 0 if early or without a flight.

    The tail is long: the largest delay is 1,688 minutes, and 98% of the flights are less than 104 minutes late.

    If `latest`, a device without a flight keeps the delay of its latest flight; it is 0 only before the first flight.
    """

    def minutes(flown: Table) -> Codes:
        return np.maximum(flown["delay"], 0), []

    what = "minutes late of the latest flight" if latest else "minutes late, 0 without a flight in an hour"
    return _flights3m(what, minutes, n_devices, days, np.uint16, cache, latest=latest)


def _taxi(what: str, read: Callable[[Table], Codes], n: int, dtype: Any, cache: Cache) -> EventStream:
    check_integer("n_devices", n, 1)

    def make() -> CachedTable:
        trips = taxi(cache=cache)
        values, labels = read(trips)
        pickup = trips["tpep_pickup_datetime"]
        order = np.argsort(pickup, kind="stable")
        hour = (pickup - np.datetime64("2015-01-01T00:00:00")) // _HOUR
        device = Random(seed="synthetic devices of taxi").below(n, trips.n)
        table, repeated = event_table((31 * 24, n), hour[order], device[order], values[order], dtype)
        return table, {"labels": labels, "repeated": repeated}

    name = f"taxi-{CATALOG['taxi'].version}-{what.split()[0]}-{n}-{_FORM}"
    table, facts = cached_table(name, make, cache=cache)
    return EventStream(table, data=f"50,000 taxi trips of January 2015, {what}, {n:,} synthetic devices", **facts)


def _flights3m(
    what: str, read: Callable[[Table], Codes], n: int, days: int, dtype: Any, cache: Cache, *, latest: bool = False
) -> EventStream:
    check_integer("n_devices", n, 1)
    check_integer("days", days, 1, 181)

    def make() -> CachedTable:
        flown = flights3m(cache=cache)
        values, labels = read(flown)
        hour = (flown["date"] - np.datetime64("2001-01-01T00:00")) // _HOUR
        device = Random(seed="synthetic devices of flights3m").below(n, flown.n)
        wanted = hour < days * 24
        # With `latest`, values are one larger at first, so that a delay of 0 is not taken for no flight.
        table, repeated = event_table((days * 24, n), hour[wanted], device[wanted], values[wanted] + latest, dtype)
        if latest:
            for before, row in pairwise(table):
                np.copyto(row, before, where=row == 0)
            table -= table > 0
        return table, {"labels": labels, "repeated": repeated}

    kind = f"{what.split()[0]}-latest" if latest else what.split()[0]
    name = f"flights3m-{CATALOG['flights3m'].version}-{kind}-{n}-{days}-{_FORM}"
    table, facts = cached_table(name, make, cache=cache)
    data = f"flights in the United States, {what}, {days} days of 2001, {n:,} synthetic devices"
    return EventStream(table, data=data, **facts)


NOTHING_YET = -1


class CategoryStream(Stream):
    """A category for each device and step, -1 before the first, from a table and an index of its columns.

    `table` has a row for each step and a column for each device of the source; `index` has the column of each device,
    every column once unless given.
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

    The `busiest` destinations of the year have their own category. The last category, "other", is for the rest.
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
