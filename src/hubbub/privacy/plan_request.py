"""The request for a plan: two of n, epsilon and the standard error, and limits on the mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hubbub.core.domain import as_domain
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.frequency.oracle import DomainLike, FrequencyOracle
from hubbub.privacy.poisoning import FORGED


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """The arguments of `hubbub.plan`, checked."""

    domain: DomainLike
    n: int | None = None
    epsilon: float | None = None
    stderr: float | None = None
    share: float = 0.0
    most_bytes: int | None = None
    alpha: float = 0.05
    forged: float = FORGED
    most_shift: float | None = None

    def __post_init__(self) -> None:
        domain = as_domain("domain", self.domain)
        if domain.size is None:
            raise InvalidValue("domain", domain, "a domain with a size; of sets, see plan_sets")
        object.__setattr__(self, "domain", domain)
        known = [name for name in ("n", "epsilon", "stderr") if getattr(self, name) is not None]
        if len(known) != 2:
            raise InvalidValue("n, epsilon, stderr", known, "two of the three; the third is solved")
        for name in ("n", "most_bytes"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InvalidValue(name, value, "an integer of at least 1")
            object.__setattr__(self, name, int(value))
        self._number("epsilon", 0.0, math.inf)
        self._number("stderr", 0.0, math.inf)
        self._number("alpha", 0.0, domain.size)
        self._number("forged", 0.0, 1.0)
        self._number("most_shift", 0.0, math.inf)
        if self.share != 0:
            self._number("share", 0.0, math.nextafter(1.0, 2.0))

    @property
    def size(self) -> int:
        """How many values there are."""
        size = as_domain("domain", self.domain).size
        assert size is not None
        return size

    @property
    def unknown(self) -> Literal["n", "epsilon", "stderr"]:
        """Which of n, epsilon and stderr is to be solved for."""
        if self.n is None:
            return "n"
        return "epsilon" if self.epsilon is None else "stderr"

    def fits(self, report_bytes: int | None) -> bool:
        """Whether a report is small enough."""
        return self.most_bytes is None or (report_bytes is not None and report_bytes <= self.most_bytes)

    def shift(self, oracle: FrequencyOracle) -> float:
        """How far forged reports, the part `forged` of all, can move `share` under an oracle."""
        return oracle.influence().shift(self.forged, self.share).largest

    def tolerates(self, shift: float | None) -> bool:
        """Whether a shift by forged reports is within `most_shift`."""
        return self.most_shift is None or (shift is not None and shift <= self.most_shift)

    def _number(self, name: str, above: float, below: float) -> None:
        value = getattr(self, name)
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int | float) or not above < value < below:
            raise InvalidValue(name, value, f"a number above {above:g} and below {below:g}")
