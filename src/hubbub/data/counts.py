"""Data sets that come as counts (emoji, names, words, sites), from which a population can be drawn."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Array, Floats, Ints
from hubbub.data.catalog import CATALOG, DataError
from hubbub.data.packages import fetch
from hubbub.data.synthetic import zipf_weights
from hubbub.random.source import Random


@dataclass(frozen=True, eq=False)
class Counts:
    """Labels, and the number of people who hold each. A label's position is its code.

    Parameters
    ----------
    labels
        The values, as strings.
    counts
        The number of people who hold each label, 0 or more.
    groups
        The category of each label, if there are categories.

    Example:
        >>> fruit = Counts(["apple", "fig", "pear"], [2, 0, 3], groups=["round", "soft", "round"])
        >>> fruit.n, fruit.frequencies.tolist()
        (5, [0.4, 0.0, 0.6])
    """

    labels: NDArray[np.str_]
    counts: Ints
    groups: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts)
        if counts.ndim != 1 or not counts.size or counts.dtype.kind not in "iu":
            raise InvalidValue("counts", self.counts, "a list of integers, one a label")
        if counts.min() < 0 or sum(counts.tolist()) >= 1 << 63:
            raise InvalidValue("counts", self.counts, "integers of at least 0 whose sum is below 2^63")
        object.__setattr__(self, "counts", _frozen(counts, np.int64))
        for field in ("labels", "groups"):
            value = getattr(self, field)
            if value is None and field == "groups":
                continue
            strings = np.asarray(value)
            if strings.shape != counts.shape or strings.dtype.kind != "U":
                raise InvalidValue(field, value, f"{counts.size} strings, one per count")
            object.__setattr__(self, field, _frozen(strings, strings.dtype))

    def __len__(self) -> int:
        return self.counts.size

    @property
    def n(self) -> int:
        """The number of people."""
        return int(self.counts.sum())

    @property
    def frequencies(self) -> Floats:
        """The share of the population that holds each label."""
        return self.counts / self.n

    def population(self, rng: Random, n: int | None = None) -> Ints:
        """The code of each person, in random order.

        Parameters
        ----------
        rng
            The source of the order, and of the draws.
        n
            By default all people. Otherwise n people are drawn from them with replacement, without rounding: each by a
            uniform integer below the number of people.

        Example:
            >>> few = Counts(["a", "b"], [1, 3])
            >>> sorted(few.population(Random(seed=1)).tolist())
            [0, 1, 1, 1]
            >>> few.population(Random(seed=1), n=100).size
            100
        """
        if n is None:
            return np.repeat(np.arange(len(self)), self.counts)[rng.permutation(self.n)]
        check_integer("n", n, 0)
        if not self.n:
            raise InvalidValue("counts", self.counts, "at least one person to draw from")
        return np.searchsorted(np.cumsum(self.counts), rng.below(self.n, n), side="right").astype(np.int64)

    def by_group(self) -> Counts:
        """The counts of the groups, in alphabetical order.

        Example:
            >>> Counts(["a", "b", "c"], [1, 2, 3], groups=["y", "x", "y"]).by_group().counts.tolist()
            [2, 4]
        """
        if self.groups is None:
            raise InvalidValue("groups", None, "counts with groups")
        return _summed(self.groups, self.counts)

    def by_label(self) -> Counts:
        """The counts with equal labels of different groups added up, in alphabetical order.

        Example:
            >>> Counts(["Lee", "Ann", "Lee"], [5, 9, 6], groups=["F", "F", "M"]).by_label().counts.tolist()
            [9, 11]
        """
        return _summed(self.labels, self.counts)


def _summed(keys: NDArray[np.str_], counts: Ints) -> Counts:
    labels, codes = np.unique(keys, return_inverse=True)
    total = np.zeros(labels.size, dtype=np.int64)
    np.add.at(total, codes, counts)
    return Counts(labels, total)


def _frozen(array: Array, dtype: Any) -> Array:
    frozen = np.array(array, dtype=dtype)
    frozen.flags.writeable = False
    return frozen


YEARS = range(1880, 2017)


def emoji(*, cache: str | os.PathLike[str] | None = None) -> Counts:
    """The occurrences of 969 emoji in tweets, most frequent first; `groups` holds their Unicode blocks.

    An occurrence counts as a person: 156,941 of them. `emoji().by_group()` counts the 26 blocks.

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
    year: int | None = None, *, sex: Literal["F", "M"] | None = None, cache: str | os.PathLike[str] | None = None
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


_BILLION = 9  # as a power of ten


def words(*, cache: str | os.PathLike[str] | None = None) -> Counts:
    """The occurrences of 318,587 English words in a billion words of text, most frequent first.

    An occurrence counts as a person: draw a population with `n` from them. Frequencies are known to a hundredth of a
    power of ten; words of equal frequency are in alphabetical order. Entries with "00", which stand for all numbers of
    one shape, are left out.

    Parameters
    ----------
    cache
        As in `fetch`.

    References:
        R. Speer: wordfreq 3.0, 2022, doi 10.5281/zenodo.7199437.
    """
    path = fetch("words", cache=cache) / "large_en.msgpack.gz"
    with gzip.open(path) as file:
        try:
            content: list[Any] = msgspec.msgpack.decode(file.read(), type=list[dict[str, Any] | list[str]])
        except msgspec.DecodeError as error:
            raise DataError(f"words: {path.name} cannot be read: {error}") from None
    if content[0] != {"format": "cB", "version": 1}:
        raise DataError(f"words: {path.name} begins with {content[0]!r}, not with the format that is known")
    # Element i holds the words with the frequency 10^(-i/100).
    groups = [sorted(word for word in group if "00" not in word) for group in content[1:]]
    counts = [round(10 ** (_BILLION - place / 100)) for place in range(len(groups))]
    labels = [word for group in groups for word in group]
    return Counts(np.array(labels), np.repeat(counts, [len(group) for group in groups]))


def domains(n: int = 1_200_000, *, exponent: float = 1.0, cache: str | os.PathLike[str] | None = None) -> Counts:
    """Visits to 16,616 real domain names, most visited first; the order and the visits are synthetic.

    The package has three lists of the most visited sites, in alphabetical order and without visits. Names that are in
    more of the lists come first; names in equally many lists are ordered by their SHA-256. The k-th name has visits in
    proportion to 1 / k^exponent, n in all. The default n is that of the "Frequent URL" data of T. Wang, 2021.

    Parameters
    ----------
    n
        The number of visits. A visit counts as a person.
    exponent
        The exponent of the Zipf distribution of the visits.
    cache
        As in `fetch`.
    """
    check_integer("n", n, 1)
    folder = fetch("domains", cache=cache)
    lists: Counter[str] = Counter()
    for file in CATALOG["domains"].files:
        lists.update(json.loads((folder / file).read_text(encoding="utf-8"))["list"])
    names = sorted(lists, key=lambda name: (-lists[name], hashlib.sha256(name.encode()).digest()))
    visits = np.diff(np.rint(n * np.cumsum(zipf_weights(len(names), exponent))), prepend=0.0)
    return Counts(np.array(names), np.sort(visits.astype(np.int64))[::-1])
