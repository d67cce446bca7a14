"""How good a list of found values is: by rank (chapters 4 and 5), and by the errors of the shares beside them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from hubbub.core.errors import InvalidValue

Found = TypeVar("Found", bound=Hashable)


def hits(found: Collection[Hashable], ranked: Sequence[Hashable]) -> int:
    """How many of the true top values were found.

    Parameters
    ----------
    found
        The values that a protocol names, in any order.
    ranked
        The true top values, most frequent first.

    Example:
        >>> hits(["a", "x"], ["a", "b", "c"])
        1
    """
    _check(found, ranked)
    return len(set(found) & set(ranked))


def ncr(found: Collection[Hashable], ranked: Sequence[Hashable]) -> float:
    """The normalised cumulative rank: the most frequent of k values counts k, the next k - 1, ..., the last 1.

    All of them are 1, none of them 0.

    Parameters
    ----------
    found, ranked
        As of `hits`.

    Example:
        >>> ncr(["a", "x"], ["a", "b", "c"])  # 3 of 3 + 2 + 1
        0.5
    """
    _check(found, ranked)
    named, k = set(found), len(ranked)
    return sum(k - place for place, value in enumerate(ranked) if value in named) / (k * (k + 1) / 2)


def squared_error(estimated: Mapping[Found, float], true: Mapping[Found, float], ranked: Sequence[Found]) -> float:
    """The mean squared error of the estimates of those top values that were found; not a number where none was.

    Parameters
    ----------
    estimated
        The estimate beside each value that a protocol names.
    true
        The number that it estimates, for every top value at least.
    ranked
        As of `hits`.

    Example:
        >>> squared_error({"a": 12.0, "x": 40.0}, {"a": 10.0, "b": 9.0}, ["a", "b"])
        4.0
    """
    _check(estimated, ranked)
    errors = [estimated[value] - true[value] for value in ranked if value in estimated]
    return float(np.mean(np.square(errors))) if errors else float("nan")


def _check(found: Collection[Hashable], ranked: Sequence[Hashable]) -> None:
    for field, values in (("found", found), ("ranked", ranked)):
        if len(set(values)) < len(values):
            raise InvalidValue(field, values, "values that differ from each other")
    if not ranked:
        raise InvalidValue("ranked", ranked, "at least one value")
