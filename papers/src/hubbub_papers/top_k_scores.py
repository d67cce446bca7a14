"""Scores of a search for the k most frequent values: hits, NCR (chapters 4 and 5), and the error of the estimates."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from hubbub.core.errors import InvalidValue

Value = TypeVar("Value", bound=Hashable)


def hits(found: Collection[Hashable], ranked: Sequence[Hashable]) -> int:
    """The number of true top values among the found ones.

    Parameters
    ----------
    found
        The values that a protocol reports as frequent, in any order.
    ranked
        The true top values, most frequent first.
    """
    _check(found, ranked)
    return len(set(found) & set(ranked))


def ncr(found: Collection[Hashable], ranked: Sequence[Hashable]) -> float:
    """The normalised cumulative rank: the most frequent of k values counts k, the next k - 1, ..., the last 1.

    It is 1 if all of the top k were found, and 0 if none was.

    Parameters
    ----------
    found, ranked
        As in `hits`.
    """
    _check(found, ranked)
    values, k = set(found), len(ranked)
    return sum(k - rank for rank, value in enumerate(ranked) if value in values) / (k * (k + 1) / 2)


def squared_error(estimated: Mapping[Value, float], true: Mapping[Value, float], ranked: Sequence[Value]) -> float:
    """The mean squared error of the estimates over the top values that were found; NaN if none was.

    Parameters
    ----------
    estimated
        The estimate of each found value.
    true
        The true number, of every top value at least.
    ranked
        As in `hits`.
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
