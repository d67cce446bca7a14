"""Values to audit a mechanism with: all of them where there are few, else the ends and some between."""

from __future__ import annotations

from typing import Any

import numpy as np

from hubbub.core.domain import Domain, Numeric, Strings, as_domain
from hubbub.mechanisms.base import Mechanism

__all__ = ["domain_of", "probes"]

_WORDS = 64  # how many stand for an open domain


def domain_of(mechanism: Mechanism) -> Domain | None:
    """The domain of a mechanism's values, where it has one.

    Example:
        >>> from hubbub import GRR
        >>> domain_of(GRR(epsilon=1.0, domain=3))
        Ordinal(size=3)
    """
    domain = getattr(mechanism, "domain", None)
    return None if domain is None else as_domain("domain", domain)


def probes(mechanism: Mechanism, most: int) -> list[Any] | None:
    """At most `most` different values that the mechanism accepts, the first and last among them; None where unknown.

    A mechanism whose values are not a domain's says them itself, in a method `example_values(most)`.

    Example:
        >>> from hubbub import GRR
        >>> probes(GRR(epsilon=1.0, domain=["a", "b", "c"]), 8), probes(GRR(epsilon=1.0, domain=1000), 3)
        (['a', 'b', 'c'], [0, 500, 999])
    """
    own = getattr(mechanism, "example_values", None)
    if own is not None:
        return list(own(most))
    domain = domain_of(mechanism)
    if isinstance(domain, Strings):
        return [str(i) for i in range(min(most, _WORDS, 10**domain.longest))]
    if domain is None or domain.size is None:
        return None
    codes = np.unique(np.linspace(0, domain.size - 1, min(most, domain.size)).round().astype(np.int64)).tolist()
    if isinstance(domain, Numeric):
        middle = (domain.edges[:-1] + domain.edges[1:]) / 2
        return [float(middle[code]) for code in codes]
    return [domain.labels[code] for code in codes] if domain.labels is not None else codes
