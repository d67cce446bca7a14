"""Values to try a mechanism on: allowed ones, populations of them, and ones that must be refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.checks.failure import CheckFailed
from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings
from hubbub.core.random import Random
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.numeric.mean import MeanMechanism

__all__ = ["bad_batches", "candidates_for", "domain_of", "known_values", "range_of", "some_values", "take", "truth_of"]

WORDS = 24
"""How many words stand for an open domain."""
NUMBERS = 65
"""How many numbers stand for a range: its ends, its middle, and others evenly between."""


def domain_of(mechanism: Mechanism) -> Domain | None:
    """The mechanism's domain, where it has one.

    Example:
        >>> from hubbub import GRR
        >>> domain_of(GRR(epsilon=1.0, domain=3))
        Ordinal(size=3)
    """
    domain = getattr(mechanism, "domain", None)
    return domain if isinstance(domain, Domain) else None


def range_of(mechanism: Mechanism) -> tuple[float, float] | None:
    """The lowest and the highest value of a mechanism for numbers.

    Example:
        >>> from hubbub import GRR
        >>> range_of(GRR(epsilon=1.0, domain=3)) is None
        True
    """
    low, high = getattr(mechanism, "low", None), getattr(mechanism, "high", None)
    return (low, high) if isinstance(low, float) and isinstance(high, float) else None


def known_values(mechanism: Mechanism, most: int) -> list[Any]:
    """At most so many different values, the domain's first and last among them; all of them if they fit.

    A mechanism whose values are not a domain's says them itself, in a method `example_values(most)`.

    Example:
        >>> from hubbub import GRR
        >>> known_values(GRR(epsilon=1.0, domain=100), most=3)
        [0, 50, 99]
    """
    own = getattr(mechanism, "example_values", None)
    if own is not None:
        return list(own(most))
    domain, bounds = domain_of(mechanism), range_of(mechanism)
    if domain is not None:
        return _values_in(domain, most)
    if bounds is not None:
        return [float(number) for number in np.linspace(*bounds, min(most, NUMBERS))]
    raise CheckFailed("a mechanism without `domain`, or `low` and `high`, must have a method `example_values(most)`")


def _values_in(domain: Domain, most: int) -> list[Any]:
    if isinstance(domain, Strings):
        return list(dict.fromkeys(f"{k}word"[: domain.longest] for k in range(min(most, WORDS))))
    if isinstance(domain, Sets):
        items = _values_in(domain.items, most)
        return [set(items[k : k + domain.most]) for k in range(len(items))]
    if domain.size is None:
        raise CheckFailed(f"no values are known of the domain {domain}: give the mechanism `example_values(most)`")
    count = min(most, domain.size)
    codes = [round(k * (domain.size - 1) / max(count - 1, 1)) for k in range(count)]
    if isinstance(domain, Categorical):
        return [domain.names[code] for code in codes]
    if isinstance(domain, Numeric):
        edges = domain.edges
        return [float((edges[code] + edges[code + 1]) / 2) for code in codes]
    return codes


def some_values(mechanism: Mechanism, n: int, rng: Random) -> Any:
    """A population of n, in random order: common values, rare ones, and about half that nobody holds.

    Example:
        >>> from hubbub import GRR
        >>> sorted(some_values(GRR(epsilon=1.0, domain=4), 6, Random(seed=1)).tolist())
        [0, 0, 0, 0, 1, 1]
    """
    every = known_values(mechanism, 4096)
    held = every[: (len(every) + 1) // 2]
    weights = 1 / np.arange(1, len(held) + 1)
    borders = np.round(np.cumsum(weights) / weights.sum() * n).astype(np.int64)
    index = np.searchsorted(borders, np.arange(n), side="right")[rng.permutation(n)]
    return take(held, index)


def take(values: list[Any], index: NDArray[Any]) -> Any:
    """Values by position: an array where they are numbers, else a list.

    Example:
        >>> take(["a", "b"], np.array([1, 0, 0]))
        ['b', 'a', 'a']
    """
    if isinstance(values[0], int | float):
        return np.array(values)[index]
    return [values[k] for k in index]


def truth_of(mechanism: Mechanism, values: Any) -> NDArray[np.float64] | None:
    """The truth: what an estimate from these values' reports should come to; None where nobody says.

    A mechanism that estimates neither shares nor a mean says it in a method `truth(values)`.

    Example:
        >>> from hubbub import GRR
        >>> truth_of(GRR(epsilon=1.0, domain=3), [0, 0, 2, 0]).tolist()
        [0.75, 0.0, 0.25]
    """
    own = getattr(mechanism, "truth", None)
    if own is not None:
        return np.asarray(own(values), dtype=np.float64)
    if isinstance(mechanism, MeanMechanism):
        return np.array([np.mean(values)])
    if not isinstance(mechanism, FrequencyOracle):
        return None
    codes = mechanism.encode(values)
    return np.bincount(codes, minlength=mechanism.size) / len(codes)


def candidates_for(mechanism: Mechanism) -> list[Any] | None:
    """What to ask `estimate` about: words where the domain is open, nothing elsewhere.

    Example:
        >>> from hubbub import GRR
        >>> candidates_for(GRR(epsilon=1.0, domain=3)) is None
        True
    """
    domain = domain_of(mechanism)
    return known_values(mechanism, WORDS) if isinstance(domain, Strings) else None


def bad_batches(mechanism: Mechanism) -> Iterator[Any]:
    """Batches that must be refused whole: wrong types, values outside, one bad value behind a good one.

    Example:
        >>> from hubbub import GRR
        >>> [0, 3] in bad_batches(GRR(epsilon=1.0, domain=3))
        True
    """
    yield from (None, 1j, object(), [None], [object()], [float("nan")], [b"bytes"], [[["deep"]]])
    good = known_values(mechanism, 1)[0]
    for bad in _outside(domain_of(mechanism), range_of(mechanism)):
        yield [bad]
        yield [good, bad]


def _outside(domain: Domain | None, bounds: tuple[float, float] | None) -> tuple[Any, ...]:
    if isinstance(domain, Numeric):
        bounds = domain.low, domain.high
    if isinstance(domain, Ordinal):
        return (-1, domain.size, 1 << 70, 0.5, "0")
    if isinstance(domain, Categorical):
        return ("".join(domain.names) + "?", 0)
    if bounds is not None:
        low, high = bounds
        return (2 * low - high, 2 * high - low, float("inf"), "a")
    if isinstance(domain, Strings):
        return (5, "x" * (domain.longest + 1), "\ud800")
    if isinstance(domain, Sets):
        return ({-1}, [0, 0], 5)
    return ()
