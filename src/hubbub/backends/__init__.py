"""Backends add up many reports: one small interface for the collector, for counts and for a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from numpy.typing import ArrayLike

from hubbub.backends.local import LocalBackend
from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.oracle import SupportMechanism

__all__ = ["LOCAL", "Backend", "LocalBackend"]


class Backend(Protocol):
    """Adds up batches of reports. Sketches are integers, so that every backend, in any order, gets the same result."""

    def fold(self, batches: Iterable[Reports], mechanism: ReportFormat) -> Sketch:
        """The sketch of all reports."""
        ...

    def support(
        self,
        batches: Iterable[Reports],
        mechanism: SupportMechanism,
        candidates: Any,
        weights: Iterable[ArrayLike] | None = None,
    ) -> Sketch:
        """The number of reports, and how many support each candidate; weighted as in `SupportMechanism.support`.

        `weights` has one array for each batch, with one integer for each report.
        """
        ...


LOCAL: Backend = LocalBackend()
"""The backend of this process."""
