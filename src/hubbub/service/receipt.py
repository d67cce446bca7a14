"""What became of a request's reports."""

from __future__ import annotations

from dataclasses import dataclass, field

from hubbub.service.reasons import Reason


@dataclass
class Receipt:
    """How many reports were counted, or had been before, and why the others were not.

    Example:
        >>> Receipt(accepted=2, rejected=[("0" * 32, "late")]).outcomes()
        {'accepted': 2, 'duplicate': 0, 'late': 1}
    """

    accepted: int = 0
    duplicates: int = 0
    rejected: list[tuple[str, Reason]] = field(default_factory=list)

    def outcomes(self) -> dict[str, int]:
        """The counters that it adds to."""
        counts: dict[str, int] = {"accepted": self.accepted, "duplicate": self.duplicates}
        for _, reason in self.rejected:
            counts[reason] = counts.get(reason, 0) + 1
        return counts
