"""The outcome of a request: how many of its reports were counted, and why the others were not."""

from __future__ import annotations

from dataclasses import dataclass, field

from hubbub.service.reasons import Reason


@dataclass
class Receipt:
    """How many reports were counted now or before, and the id and reason of each report that was rejected."""

    accepted: int = 0
    duplicates: int = 0
    rejected: list[tuple[str, Reason]] = field(default_factory=list)

    def outcomes(self) -> dict[str, int]:
        """How many reports had which outcome: what is added to the counters."""
        counts: dict[str, int] = {"accepted": self.accepted, "duplicate": self.duplicates}
        for _, reason in self.rejected:
            counts[reason] = counts.get(reason, 0) + 1
        return counts
