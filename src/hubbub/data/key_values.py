"""Key-value data, several pairs a person: ratings of movies."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.random import Random
from hubbub.core.ternary import Ternary
from hubbub.data.fetch import fetch

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
        """The pairs as a batch for the ternary mechanisms, one row a person."""
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
    everything = KeyValues(
        user - 1,
        np.array([code[film] for film in item.tolist()]),
        (stars - 1) / ((_STARS - 1) / 2) - 1,
        labels=np.array(labels),
        n=int(user.max()),
    )
    if genre is None:
        return everything
    genres = {name for row in titles for name in row[3].split()}
    if genre not in genres:
        raise InvalidValue("genre", genre, f"one of {', '.join(sorted(genres))}")
    return everything.only([label for label, row in zip(labels, titles, strict=True) if genre in row[3].split()])


def _rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()[1:]]
