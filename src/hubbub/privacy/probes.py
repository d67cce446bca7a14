"""The domain of a mechanism's values, and how many values there are."""

from __future__ import annotations

from dataclasses import MISSING, fields
from math import comb

from hubbub.core.domain import Domain, Sets, as_domain
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.ternary.ternary import TernaryMechanism


def domain_of(mechanism: ReportFormat) -> Domain | None:
    """The domain of a mechanism's values, where it has one."""
    domain = getattr(mechanism, "domain", None)
    return None if domain is None else as_domain("domain", domain)


def required_fields(kind: type[ReportFormat]) -> list[str]:
    """The fields besides epsilon that a mechanism cannot be built without."""
    missing = [field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING]
    return [name for name in missing if name != "epsilon"]


def count_of(mechanism: ReportFormat) -> int | None:
    """How many values there are; None where there is no end of them."""
    if isinstance(mechanism, TernaryMechanism):
        return mechanism.size
    domain = domain_of(mechanism)
    if isinstance(domain, Sets):
        return sum(comb(domain.items.size or 0, size) for size in range(domain.most + 1))
    return None if domain is None else domain.size
