"""Data sets that come as counts: emoji, and given names."""

from __future__ import annotations

import csv
import os
from typing import Literal

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.data.counts import Counts
from hubbub.data.fetch import fetch

YEARS = range(1880, 2017)


def emoji(*, cache: str | os.PathLike[str] | None = None) -> Counts:
    """The occurrences of 969 emoji in tweets, most frequent first; `groups` holds their Unicode blocks.

    An occurrence stands for a person: 156,941 of them. `emoji().by_group()` counts the 26 blocks.

    Parameters
    ----------
    cache
        As in `fetch`.

    References:
        Kralj Novak, Smailović, Sluban, Mozetič: Sentiment of Emojis. PLoS ONE 10(12), 2015.
    """
    path = fetch("emoji", cache=cache) / "Emoji_Sentiment_Data_v1.0.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(row["Emoji"], int(row["Occurrences"]), row["Unicode block"]) for row in csv.DictReader(file)]
    return _ranked(rows)


def names(
    year: int | None = None,
    *,
    sex: Literal["F", "M"] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Counts:
    """Given names of children born in the United States, most frequent first; `groups` holds the sex.

    A row is a name and a sex: a name that is given to both sexes has two rows (`by_label` adds them up). All years
    together have 344,533,897 births: draw a population with `n` from them. Names that are given fewer than 5 times in a
    year to a sex are not in the data.

    Parameters
    ----------
    year
        1880 to 2016; by default all years together.
    sex
        "F" or "M"; by default both.
    cache
        As in `fetch`.
    """
    if year is not None and year not in YEARS:
        raise InvalidValue("year", year, f"an integer from {YEARS[0]} to {YEARS[-1]}, or nothing")
    if sex not in (None, "F", "M"):
        raise InvalidValue("sex", sex, "F, M, or nothing")
    folder = fetch("names", cache=cache)
    total: dict[tuple[str, str], int] = {}
    for birth_year in YEARS if year is None else (year,):
        for line in (folder / f"yob{birth_year}.txt").read_text(encoding="ascii").splitlines():
            name, group, count = line.split(",")
            total[name, group] = total.get((name, group), 0) + int(count)
    return _ranked([(name, count, group) for (name, group), count in total.items() if sex in (None, group)])


def _ranked(rows: list[tuple[str, int, str]]) -> Counts:
    rows.sort(key=lambda row: (-row[1], row[0], row[2]))
    labels, counts, groups = zip(*rows, strict=True)
    return Counts(np.array(labels), np.array(counts, dtype=np.int64), np.array(groups))
