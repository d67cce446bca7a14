"""Backends add up many reports: in this process, and by two pure functions wherever the reports are.

`LOCAL` adds up reports in memory. `hubbub.backends.folding` has the two functions that any engine needs, `fold` and
`merge`; `hubbub.backends.file_fold` runs them over files.
"""

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.oracle import SupportMechanism

__all__ = ["LOCAL", "Backend", "LocalBackend"]


class Backend(Protocol):
    """Adds up batches of reports. Sketches are integers, so that every backend, in any order, gets the same result."""

    def fold(self, batches: Iterable[Reports], mechanism: ReportFormat) -> Sketch: ...

    def support(
        self,
        batches: Iterable[Reports],
        mechanism: SupportMechanism,
        candidates: Values,
        weights: Iterable[ArrayLike] | None = None,
    ) -> Sketch:
        """The number of reports, and how many support each candidate; weighted as in `SupportMechanism.support`.

        `weights` has one array for each batch, with one integer for each report.
        """
        ...


CHUNK = 1 << 16


class LocalBackend:
    """Cuts batches into chunks, and adds up the mechanism's sketches of the chunks."""

    def __init__(self, *, chunk: int = CHUNK) -> None:
        if chunk < 1:
            raise InvalidValue("chunk", chunk, "at least 1")
        self._chunk = chunk

    def fold(self, batches: Iterable[Reports], mechanism: ReportFormat) -> Sketch:
        total: Sketch | None = None
        for batch in batches:
            for rows in self._chunks(batch):
                part = mechanism.accumulate(batch[rows] if len(batch) > self._chunk else batch)
                total = part if total is None else total + part
        return mechanism.empty() if total is None else total

    def support(
        self,
        batches: Iterable[Reports],
        mechanism: SupportMechanism,
        candidates: Values,
        weights: Iterable[ArrayLike] | None = None,
    ) -> Sketch:
        """The number of reports, and how many of them support each candidate."""
        shape = (len(candidates),) if weights is None else (2, len(candidates) + 1)
        total = mechanism.support_sketch(candidates, 0, np.zeros(shape, dtype=np.int64))
        each_weights = repeat(None) if weights is None else weights
        for batch, batch_weights in zip(batches, each_weights, strict=weights is not None):
            for rows in self._chunks(batch):
                chunk_weights = None if batch_weights is None else np.asarray(batch_weights)[rows]
                total = total + mechanism.support(batch[rows], candidates, chunk_weights)
        return total

    def _chunks(self, batch: Reports) -> Iterator[slice]:
        return (slice(start, start + self._chunk) for start in range(0, len(batch), self._chunk))


LOCAL: Backend = LocalBackend()
"""The backend of this process."""
