"""The plan of a search by prefixes: how many groups of people, and how long a prefix each of them reports."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from hubbub.core.bit_strings import BitStrings
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import epsilon_of, units_of
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.protocols.heavy_hitters.written import Written

QUERY_LIMIT = 1 << 20
"""How many candidates are tested in all, unless given: the chapter's bound (section 4.4.1)."""
MOST_FOUND = 1 << 12
_MOST_QUERIES = 1 << 30


@dataclass(frozen=True, kw_only=True)
class PrefixPlan:
    """A search for the k most common values: who reports what.

    Parameters
    ----------
    written
        How values are written as strings of bits.
    k
        How many values are looked for.
    epsilon
        What one report spends: everyone makes one.
    query_limit
        How many candidates may be tested in all groups together.
    branching
        Whether prefixes are of any number of bits or of whole characters.
    groups
        How many groups; as few as the limit allows unless given (section 4.3.3).
    threshold
        Where it is given, only values whose share is estimated to be at least this are kept, at every step.

    Example:
        >>> from hubbub.protocols.heavy_hitters.written import Integers
        >>> plan = PrefixPlan(written=Integers(64), k=32, epsilon=2.0)
        >>> plan.lengths, plan.queries
        ((17, 29, 41, 53, 64), 589824)
    """

    written: Written
    k: int
    epsilon: float
    query_limit: int = QUERY_LIMIT
    branching: Literal["bits", "characters"] = "bits"
    groups: int = 0
    threshold: float | None = None
    lengths: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_integer("k", self.k, 1, MOST_FOUND)
        check_integer("query_limit", self.query_limit, 2, _MOST_QUERIES)
        check_integer("groups", self.groups, 0, self.written.bits)
        if self.branching not in ("bits", "characters"):
            raise InvalidValue("branching", self.branching, "bits or characters")
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise InvalidValue("threshold", self.threshold, "a share between 0 and 1")
        unit = self.written.unit if self.branching == "characters" else 1
        fewest = self.groups or 1
        for groups in range(fewest, (self.groups or self.written.bits) + 1):
            lengths = prefix_lengths(self.written.bits, self.k, groups, unit)
            if queries(lengths, self.k) <= self.query_limit:
                object.__setattr__(self, "lengths", lengths)
                return
        need = queries(prefix_lengths(self.written.bits, self.k, self.groups or self.written.bits, unit), self.k)
        raise InvalidValue("query_limit", self.query_limit, f"at least {need}, which so many values and groups need")

    @cached_property
    def oracle(self) -> OLH:
        """The mechanism of every report."""
        return OLH(epsilon=epsilon_of(units_of(self.epsilon)), domain=BitStrings(64))

    @property
    def queries(self) -> int:
        """The most candidates that are tested in all groups together."""
        return queries(self.lengths, self.k)


def prefix_lengths(bits: int, k: int, groups: int, unit: int = 1) -> tuple[int, ...]:
    """The length of the prefixes of each group (Algorithm 1, line 5), in whole units; groups of equal length are one.

    Example:
        >>> prefix_lengths(128, 256, 6), prefix_lengths(32, 16, 2, unit=8)
        ((28, 48, 68, 88, 108, 128), (24, 32))
    """
    first = min(math.ceil(math.log2(k)), bits)
    exact = (first + -(-i * (bits - first) // groups) for i in range(1, groups + 1))
    return tuple(dict.fromkeys(min(-(-length // unit) * unit, bits) for length in exact))


def queries(lengths: tuple[int, ...], k: int) -> int:
    """How many candidates are tested at most, over all groups (Eq 4.3, without the reports).

    Example:
        >>> queries((28, 48), 256) == 2**28 + 256 * 2**20
        True
    """
    total, known, prefixes = 0, 0, 1
    for length in lengths:
        candidates = prefixes << (length - known)
        total, known, prefixes = total + candidates, length, min(k, candidates)
    return total
