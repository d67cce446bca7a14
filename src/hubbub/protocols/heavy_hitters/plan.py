"""The plan of a search by prefixes: how many groups there are, and the length of the prefix that each reports."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from hubbub.core.bit_strings import BitStrings
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import epsilon_of, units_of
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.protocols.heavy_hitters.bit_encoding import BitEncoding

QUERY_LIMIT = 1 << 20
"""The default for how many candidates are tested in all: the chapter's bound (section 4.4.1)."""
MOST_FOUND = 1 << 12
_MOST_QUERIES = 1 << 30


@dataclass(frozen=True, kw_only=True)
class PrefixPlan:
    """The groups of a search for the k most common values, and the length of the prefix that each group reports.

    Parameters
    ----------
    encoding
        How values are encoded as strings of bits.
    k
        How many values are searched for.
    epsilon
        What one report spends; each device makes one.
    query_limit
        How many candidates may be tested in all groups together.
    branching
        Whether prefixes have any number of bits, or whole characters.
    groups
        How many groups; unless given, as few as the limit allows (section 4.3.3).
    threshold
        If given, only prefixes with an estimated share of at least this are extended.
    """

    encoding: BitEncoding
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
        check_integer("groups", self.groups, 0, self.encoding.bits)
        if self.branching not in ("bits", "characters"):
            raise InvalidValue("branching", self.branching, "bits or characters")
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise InvalidValue("threshold", self.threshold, "a share between 0 and 1")
        unit = self.encoding.unit if self.branching == "characters" else 1
        fewest = self.groups or 1
        for groups in range(fewest, (self.groups or self.encoding.bits) + 1):
            lengths = prefix_lengths(self.encoding.bits, self.k, groups, unit)
            if queries(lengths, self.k) <= self.query_limit:
                object.__setattr__(self, "lengths", lengths)
                return
        need = queries(prefix_lengths(self.encoding.bits, self.k, self.groups or self.encoding.bits, unit), self.k)
        raise InvalidValue("query_limit", self.query_limit, f"at least {need}, which so many values and groups need")

    @cached_property
    def oracle(self) -> OLH:
        """The mechanism of every report."""
        return OLH(epsilon=epsilon_of(units_of(self.epsilon)), domain=BitStrings(64))

    @property
    def queries(self) -> int:
        """How many candidates are tested at most, in all groups together."""
        return queries(self.lengths, self.k)


def prefix_lengths(bits: int, k: int, groups: int, unit: int = 1) -> tuple[int, ...]:
    """The prefix length of each group (Algorithm 1, line 5), in whole units; groups of equal length are merged."""
    first = min(math.ceil(math.log2(k)), bits)
    exact = (first + -(-i * (bits - first) // groups) for i in range(1, groups + 1))
    return tuple(dict.fromkeys(min(-(-length // unit) * unit, bits) for length in exact))


def queries(lengths: tuple[int, ...], k: int) -> int:
    """How many candidates are tested at most, over all groups (Eq 4.3, without the reports)."""
    total, known, prefixes = 0, 0, 1
    for length in lengths:
        candidates = prefixes << (length - known)
        total, known, prefixes = total + candidates, length, min(k, candidates)
    return total
