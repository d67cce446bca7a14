"""What a report costs the server, in elementary operations and in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from hubbub.mechanisms.frequency.oracle import FrequencyOracle

__all__ = ["ServerCost", "server_cost"]


class ServerCost(NamedTuple):
    """Operations a report, once-only work shared among n reports, and what they are."""

    operations: float
    work: str


_COSTS: dict[str, tuple[Callable[[Any, int], float], str]] = {
    "GRR": (lambda oracle, n: 1.0, "one increment"),
    "Unary": (lambda oracle, n: float(-(-oracle.size // 8)), "the bits of d/8 bytes added up"),
    "SubsetSelection": (lambda oracle, n: float(-(-oracle.size // 8)), "the bits of d/8 bytes added up"),
    "SHE": (lambda oracle, n: float(oracle.size), "d numbers added up"),
    "LocalHashing": (lambda oracle, n: float(oracle.size), "d hashes"),
    "FLH": (
        lambda oracle, n: 1 + oracle.functions * oracle.buckets * oracle.size / n,
        "one increment, then d hashes once a function and bucket",
    ),
    "Hadamard": (
        lambda oracle, n: 1 + oracle.rows * math.log2(oracle.rows) / n,
        "one increment, then one transform of d log d",
    ),
}
_ANY = (lambda oracle, n: float(oracle.size), "d operations")


def server_cost(oracle: FrequencyOracle, n: int) -> ServerCost:
    """The cost of folding in one of n reports and estimating the whole domain.

    An oracle may say its own number, by a method `server_cost(n)`.

    Example:
        >>> from hubbub import GRR, OLH
        >>> server_cost(GRR(epsilon=1.0, domain=64), 1000)
        ServerCost(operations=1.0, work='one increment')
        >>> server_cost(OLH(epsilon=1.0, domain=64), 1000)
        ServerCost(operations=64.0, work='d hashes')
    """
    names = (kind.__name__ for kind in type(oracle).__mro__)
    operations, work = next((_COSTS[name] for name in names if name in _COSTS), _ANY)
    own = getattr(oracle, "server_cost", None)
    return ServerCost(float(own(n)) if own is not None else operations(oracle, n), work)
