"""Where many reports are added up: one small interface, so that a collector, a count and a cluster do it alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from numpy.typing import ArrayLike

from hubbub.backends.local import LocalBackend
from hubbub.core.reports import Reports
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.support import SupportMechanism

__all__ = ["LOCAL", "Backend", "LocalBackend"]


class Backend(Protocol):
    """Adds up batches of reports. Sketches are integers: whoever adds them up, in whatever order, has the same."""

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
        """How many reports there are and how many support each candidate; with weights, as `SupportMechanism.support`.

        There is one array of weights a batch, with an integer a report.
        """
        ...


LOCAL: Backend = LocalBackend()
"""In this process, in chunks."""
