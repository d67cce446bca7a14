"""The domain of any mechanism."""

from __future__ import annotations

from hubbub.core.domain import Domain, as_domain
from hubbub.mechanisms.base import Mechanism

__all__ = ["domain_of"]


def domain_of(mechanism: Mechanism) -> Domain | None:
    """The domain of a mechanism's values, where it has one.

    Example:
        >>> from hubbub import GRR
        >>> domain_of(GRR(epsilon=1.0, domain=3))
        Ordinal(size=3)
    """
    domain = getattr(mechanism, "domain", None)
    return None if domain is None else as_domain("domain", domain)
