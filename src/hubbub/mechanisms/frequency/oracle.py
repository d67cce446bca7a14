"""Frequency oracles: everyone holds one value, and reports support some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hubbub.core.bit_strings import BitStrings
from hubbub.core.domain import as_domain
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.frequency.support import DomainLike, Moments, SupportMechanism, unsigned

__all__ = ["DomainLike", "FrequencyOracle", "Moments", "unsigned"]


@dataclass(frozen=True, kw_only=True)
class FrequencyOracle(SupportMechanism):
    """The share of each value of a domain, of which everyone holds one; `SupportMechanism` has the estimator."""

    def _resolve_domain(self) -> None:
        domain = as_domain("domain", self.domain)
        if domain.size is None and not (self.takes_open and isinstance(domain, BitStrings)):
            raise InvalidValue("domain", domain, "a domain with a size")
        self._set("domain", domain)

    def encode(self, values: Any) -> NDArray[Any]:
        return self._domain.encode(values)

    def example_values(self, most: int) -> list[Any]:
        return self._domain.examples(most)
