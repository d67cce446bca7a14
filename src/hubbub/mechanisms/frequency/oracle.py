"""Frequency oracles: everyone holds one value, and reports support some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hubbub.core.bit_strings import BitStrings
from hubbub.core.domain import as_domain
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.frequency.choice import TWO_64, other_weight, truth_weight
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

    def _resolve_other(self, options: int, field: str = "other") -> None:
        """Choose and check a field that holds, of 2^64, the share of each false answer among so many options."""
        if getattr(self, field) == 0:
            self._set(field, other_weight(self.epsilon, options))
        self._integer(field, 1, TWO_64 // options)
        if truth_weight(getattr(self, field), options) <= getattr(self, field):
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 64-bit probabilities can tell from 0")

    def encode(self, values: Any) -> NDArray[Any]:
        return self._domain.encode(values)

    def example_values(self, most: int) -> list[Any]:
        return self._domain.examples(most)
