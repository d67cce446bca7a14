"""Sets and key-value pairs of people: shopping baskets, real and synthetic, and ratings of movies."""

from __future__ import annotations

import csv
import io
import math
import os
import tarfile
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.data.packages import fetch
from hubbub.data.synthetic import categorical
from hubbub.mechanisms.ternary.vectors import Ternary
from hubbub.random.source import Random


@dataclass(frozen=True, eq=False)
class Baskets(ItemSets):
    """Shopping baskets: the items that each customer bought.

    Parameters
    ----------
    offsets, items, domain
        As in `ItemSets`.
    labels
        The name of each item, if the items have names.

    Example:
        >>> Baskets([0, 2, 2, 3], [4, 0, 4], domain=5).sizes.tolist()
        [2, 0, 1]
    """

    labels: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labels is not None:
            labels = np.array(self.labels)
            if labels.shape != (self.domain,) or labels.dtype.kind != "U":
                raise InvalidValue("labels", self.labels, f"{self.domain} strings, one per item")
            labels.flags.writeable = False
            object.__setattr__(self, "labels", labels)


def retail(*, cache: str | os.PathLike[str] | None = None) -> Baskets:
    """Purchases in a Belgian supermarket: 88,162 baskets over 16,470 items, 1 to 76 of them in each.

    Parameters
    ----------
    cache
        As in `fetch`.
    """
    text = (fetch("retail", cache=cache) / "belgian_retail_baskets.dat").read_text(encoding="ascii")
    sizes = [len(line.split()) for line in text.splitlines()]
    items = np.fromstring(text, dtype=np.int64, sep=" ")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Baskets(offsets, items, domain=int(items.max()) + 1)


def online_retail(*, cache: str | os.PathLike[str] | None = None) -> Baskets:
    """Purchases of 4,372 customers of a British gift shop in a year: 1 to 1,823 of 3,885 articles each.

    A basket is a customer's whole history, so that the longest are very long. Articles are in alphabetical order.
    Names that differ only in spaces at their ends are the same article.

    Parameters
    ----------
    cache
        As in `fetch`.
    """
    with tarfile.open(fetch("online_retail", cache=cache) / "Online_Retail_Grouped.tar.xz", "r:xz") as archive:
        content = archive.extractfile("Online_Retail_Grouped.csv")
        assert content is not None
        rows = list(csv.reader(io.TextIOWrapper(content, encoding="utf-8", newline="")))
    baskets = [sorted({name.strip() for name in row} - {""}) for row in rows]
    labels, items = np.unique([name for basket in baskets for name in basket], return_inverse=True)
    offsets = np.concatenate([[0], np.cumsum([len(basket) for basket in baskets])])
    return Baskets(offsets, items, domain=labels.size, labels=labels)


_MOST_MEAN = 50.0


def independent_baskets(n: int, weights: ArrayLike, mean: float, rng: Random) -> Baskets:
    """Baskets that hold each item independently of the others.

    The number of items drawn for a basket has a Poisson distribution; an item that is drawn twice is held once. So an
    item with the share w of all weights is held with probability 1 - e^(-mean w), independently of the others.

    Parameters
    ----------
    n
        The number of baskets.
    weights
        The weights with which items are drawn.
    mean
        The mean number of items drawn for a basket; at most 50.
    rng
        The randomness.
    """
    if isinstance(mean, bool) or not isinstance(mean, int | float) or not 0 < mean <= _MOST_MEAN:
        raise InvalidValue("mean", mean, f"a number above 0, at most {_MOST_MEAN:g}")
    most = math.ceil(mean + 20 * math.sqrt(mean) + 20)  # the chance of more is negligible in any run
    logs = [size * math.log(mean) - math.lgamma(size + 1) for size in range(most)]
    sizes = categorical(n, np.exp(np.array(logs) - max(logs)), rng)
    drawn = categorical(int(sizes.sum()), weights, rng)
    domain = np.asarray(weights).size
    pairs = np.unique(np.repeat(np.arange(n), sizes) * domain + drawn)
    basket_sizes = np.bincount(pairs // domain, minlength=n)
    return Baskets(np.concatenate([[0], np.cumsum(basket_sizes)]), pairs % domain, domain)


_STARS = 5


@dataclass(frozen=True, eq=False)
class KeyValues:
    """Key-value pairs of people, in columns: the person, the key, and the value from -1 to 1.

    Parameters
    ----------
    person, key, value
        Columns of one length. Codes of people run from 0 to n-1; the code of a key is its index in `labels`.
    labels
        The name of each key, even if nobody holds it.
    n
        The number of people, including those who hold nothing.

    Example:
        >>> two = KeyValues([0, 0, 1], [0, 2, 2], [1.0, -0.5, 0.5], labels=["Alien", "Big", "Crash"], n=3)
        >>> two.dimension, two.held.tolist(), two.ternary().means().round(3).tolist()
        (3, [2, 1, 0], [0.333, 0.0, 0.0])
        >>> two.only(["Crash"]).ternary().frequencies().round(3).tolist()
        [0.667]
    """

    person: NDArray[np.int64]
    key: NDArray[np.int64]
    value: NDArray[np.float64]
    labels: NDArray[np.str_]
    n: int

    def __post_init__(self) -> None:
        for field, kind in (("person", np.int64), ("key", np.int64), ("value", np.float64), ("labels", np.str_)):
            column = np.array(getattr(self, field), dtype=kind)
            column.flags.writeable = False
            object.__setattr__(self, field, column)
        check_integer("n", self.n, 1)
        if not self.person.shape == self.key.shape == self.value.shape == (self.key.size,):
            raise InvalidValue("key", self.key.shape, f"columns of one length, {self.person.shape}")
        for field, most in (("person", self.n), ("key", self.dimension)):
            codes = getattr(self, field)
            if codes.size and not 0 <= codes.min() <= codes.max() < most:
                raise InvalidValue(field, codes, f"codes from 0 to {most - 1}")
        if not (np.abs(self.value) <= 1).all():
            raise InvalidValue("value", self.value, "numbers from -1 to 1")
        pairs = np.sort(self.person * self.dimension + self.key)
        if (pairs[1:] == pairs[:-1]).any():
            raise InvalidValue("key", self.key, "no key twice of one person")

    @property
    def dimension(self) -> int:
        """The number of keys."""
        return self.labels.size

    @property
    def held(self) -> NDArray[np.int64]:
        """The number of keys that each person holds."""
        return np.bincount(self.person, minlength=self.n)

    def ternary(self) -> Ternary:
        """The pairs as a batch for the ternary mechanisms, one row per person."""
        return Ternary.columns(self.key, self.value, person=self.person, n=self.n, dimension=self.dimension)

    def only(self, labels: list[str]) -> KeyValues:
        """The same people with only the keys of these labels, in this order.

        Example:
            >>> both = KeyValues([0, 1], [0, 1], [1.0, -1.0], labels=["Alien", "Big"], n=2)
            >>> few = both.only(["Big"])
            >>> few.n, few.person.tolist(), few.key.tolist()
            (2, [1], [0])
        """
        old_code = {str(label): code for code, label in enumerate(self.labels)}
        missing = [label for label in labels if label not in old_code]
        if missing or not labels:
            raise InvalidValue("labels", missing, "labels that are there, at least one")
        new_code = np.full(self.dimension, -1, dtype=np.int64)
        new_code[[old_code[label] for label in labels]] = np.arange(len(labels))
        chosen = new_code[self.key] >= 0
        person, key, value = self.person[chosen], new_code[self.key[chosen]], self.value[chosen]
        return replace(self, person=person, key=key, value=value, labels=np.array(labels))

    def resampled(self, n: int, rng: Random) -> KeyValues:
        """n people drawn from these, with replacement.

        Example:
            >>> one = KeyValues([0, 0], [0, 1], [1.0, -1.0], labels=["Alien", "Big"], n=1)
            >>> one.resampled(3, Random(seed=1)).ternary().means().tolist()
            [1.0, -1.0]
        """
        drawn = rng.below(self.n, n)
        by_person, sizes = np.argsort(self.person, kind="stable"), self.held
        first = np.cumsum(sizes) - sizes
        drawn_sizes = sizes[drawn]
        # In the order `by_person` the entries of a person are consecutive: copy that run for every person drawn.
        within = np.arange(drawn_sizes.sum()) - np.repeat(np.cumsum(drawn_sizes) - drawn_sizes, drawn_sizes)
        entry = by_person[np.repeat(first[drawn], drawn_sizes) + within]
        person = np.repeat(np.arange(n), drawn_sizes)
        return replace(self, person=person, key=self.key[entry], value=self.value[entry], n=n)


def movies(*, genre: str | None = None, cache: str | os.PathLike[str] | None = None) -> KeyValues:
    """Ratings of movies: 100,000 of them, by 943 people, of 1,682 movies; 1 to 5 stars are -1, -0.5, 0, 0.5 and 1.

    Keys are in the order of the source. A label is a title and a year; a title that occurs twice is followed by its
    number in the source. Everyone rated at least 20 movies.

    Parameters
    ----------
    genre
        Read only the movies of this genre, such as "Mystery": a movie's genre is public, who rated it is private.
    cache
        As in `fetch`.

    References:
        Harper, Konstan: The MovieLens Datasets: History and Context. ACM TiiS 5(4), 2015.
    """
    folder = fetch("movies", cache=cache)
    titles = _rows((folder / "ml-100k.item").read_text(encoding="utf-8"))
    labels = [f"{title} ({year})" for _, title, year, _ in titles]
    labels = [f"{film} #{row[0]}" if labels.count(film) > 1 else film for film, row in zip(labels, titles, strict=True)]
    ratings = _rows((folder / "ml-100k.inter").read_text(encoding="ascii"))
    user, item, stars = np.array([row[:3] for row in ratings], dtype=np.int64).T
    code = {int(row[0]): number for number, row in enumerate(titles)}
    all_ratings = KeyValues(
        user - 1,
        np.array([code[film] for film in item.tolist()]),
        (stars - 1) / ((_STARS - 1) / 2) - 1,
        labels=np.array(labels),
        n=int(user.max()),
    )
    if genre is None:
        return all_ratings
    genres = {name for row in titles for name in row[3].split()}
    if genre not in genres:
        raise InvalidValue("genre", genre, f"one of {', '.join(sorted(genres))}")
    return all_ratings.only([label for label, row in zip(labels, titles, strict=True) if genre in row[3].split()])


def _rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()[1:]]
