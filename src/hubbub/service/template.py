"""Single reports, many at once: all reports of a mechanism have the same bytes but for their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import HubbubError
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import Mechanism

__all__ = ["Template"]

Parts = dict[str, dict[str, NDArray[Any]]]


class Template:
    """The bytes of one report of a mechanism, and where its columns are in them.

    Example:
        >>> from hubbub import GRR, Random
        >>> grr = GRR(epsilon=1.0, domain=300)
        >>> one, other = (grr.randomize([value], Random(seed=value)).to_bytes() for value in (7, 9))
        >>> reports, good = Template(grr).read([one, b"hostile", other])
        >>> len(reports), good.tolist()
        (2, [True, False, True])
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        blank = np.frombuffer(self._bytes(), dtype=np.uint8)
        self._places = {}
        self._fixed = np.ones(len(blank), dtype=bool)
        for column in mechanism.columns:
            differs = np.flatnonzero(np.frombuffer(self._bytes(column.name), dtype=np.uint8) != blank)
            self._places[column.name] = slice(int(differs[0]), int(differs[-1]) + 1)
            self._fixed[differs] = False
        self._blank = blank[self._fixed]
        self._size = len(blank)

    def read(self, reports: Sequence[bytes]) -> tuple[Reports, NDArray[np.bool_]]:
        """The reports that a client of the mechanism can have made, as one batch, and which those are."""
        good = np.fromiter((len(report) == self._size for report in reports), dtype=bool, count=len(reports))
        joined = b"".join(report for report in reports if len(report) == self._size)
        rows = np.frombuffer(joined, dtype=np.uint8).reshape(-1, self._size)
        alike = (rows[:, self._fixed] == self._blank).all(axis=1)
        batch = self._batch(rows[alike])
        allowed = self._allowed(batch)
        alike[alike] = allowed
        good[good] = alike
        return batch[allowed], good

    def _batch(self, rows: NDArray[np.uint8]) -> Reports:
        parts: Parts = {"public": {}, "private": {}}
        for column in self._mechanism.columns:
            data = np.ascontiguousarray(rows[:, self._places[column.name]])
            little = np.dtype(column.dtype).newbyteorder("<")
            array = data.view(little).reshape(len(rows), *column.shape)
            parts[column.part][column.name] = array.astype(column.dtype, copy=False)
        return Reports(self._mechanism.spec_id, public=parts["public"], private=parts["private"])

    def _allowed(self, batch: Reports) -> NDArray[np.bool_]:
        if self._passes(batch):
            return np.ones(len(batch), dtype=bool)
        return np.fromiter((self._passes(batch[row : row + 1]) for row in range(len(batch))), dtype=bool)

    def _passes(self, batch: Reports) -> bool:
        try:
            self._mechanism.check(batch)
        except HubbubError:
            return False
        return True

    def _bytes(self, filled: str | None = None) -> bytes:
        """A report of zeros; of one column, all bits."""
        parts: Parts = {"public": {}, "private": {}}
        for column in self._mechanism.columns:
            raw = np.full((1, *column.shape, np.dtype(column.dtype).itemsize), 255 * (column.name == filled), np.uint8)
            parts[column.part][column.name] = raw.view(column.dtype)[..., 0]
        return Reports(self._mechanism.spec_id, public=parts["public"], private=parts["private"]).to_bytes()
