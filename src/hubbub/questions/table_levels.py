"""The levels of a private table: their oracles, and the names of their intervals."""

from __future__ import annotations

import math
from functools import lru_cache

from hubbub.core.bit_strings import BitStrings
from hubbub.core.domain import NONE, Categorical, Domain, Numeric
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.dimension import Dimension

MOST_COUNTED = 1 << 12
"""How many cells of a single column are counted as reports come."""
_MOST_NAMED = 12
"""How many names of a column the page lists."""


def column_size(domain: Domain) -> int:
    """How many codes a column has: its values, and one for nothing recorded."""
    assert domain.size is not None
    return domain.size + 1


def interval_name(domain: Domain, first: int, last: int) -> str:
    """The name of an interval of codes."""
    assert domain.size is not None
    beyond = f" or {NONE}" if last >= domain.size else ""
    if first >= domain.size:
        return NONE
    last = min(last, domain.size - 1)
    if isinstance(domain, Numeric):
        return f"{domain.edges[first]:g} to {domain.edges[last + 1]:g}{beyond}"
    names = domain.labels
    ends = [str(code) if names is None else names[code] for code in (first, last)]
    return (ends[0] if first == last else f"{ends[0]} to {ends[1]}") + beyond


def half_of(dimension: Dimension) -> tuple[int, int] | frozenset[int]:
    """Half of a column's codes: the middle of an ordered column, the first half of another."""
    quarter = dimension.size // 4
    if dimension.levels == 2:
        return frozenset(range(max(dimension.size // 2, 1)))
    return quarter, dimension.size - 1 - quarter


@lru_cache(maxsize=4096)
def device_oracle(epsilon: float, cells: int, *, listed: bool) -> FrequencyOracle:
    """The oracle of a level as devices run it: direct answers if there are few cells, else hashes.

    Only the cells that a release lists are counted as reports come. Cells of other levels are strings of bits, and
    those that a query needs are counted among the kept reports.
    """
    if cells < 3 * math.exp(min(epsilon, 50.0)) + 2:
        return GRR(epsilon=epsilon, domain=cells)
    if listed and cells <= MOST_COUNTED:
        return OLH(epsilon=epsilon, domain=cells)
    return OLH(epsilon=epsilon, domain=BitStrings(max(cells - 1, 1).bit_length()))


def column_values(domain: Domain) -> str:
    """The values that a query can compare a column with, in words: the names themselves, if they are few."""
    if isinstance(domain, Categorical) and len(domain.names) <= _MOST_NAMED:
        return ", ".join(domain.names)
    return domain.describe()
