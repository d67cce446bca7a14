"""Streams of values of simulated devices, and their true shares or means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue


class Stream(ABC):
    """The values of n devices over time. The order of the devices is fixed; similar ones must not be side by side."""

    n: int
    steps: int | None
    """How many steps there are; None for a stream without end."""

    @abstractmethod
    def values(self, step: int, start: int, stop: int) -> Any:
        """The values of the devices start to stop-1 at a step, counted from 1: an array, or `ItemSets`."""

    @abstractmethod
    def truth(self, step: int) -> NDArray[np.float64]:
        """The true shares, or the true mean, of the population at a step."""


class ArrayStream(Stream):
    """A stream from an array of steps by devices; a memory-mapped array is read as it is needed.

    Parameters
    ----------
    table
        A row for each step, a column for each device: codes from 0 to domain-1, or numbers if `domain` is None.
    domain
        How many codes there are.
    """

    def __init__(self, table: NDArray[Any], domain: int | None = None) -> None:
        if table.ndim != 2 or 0 in table.shape:
            raise InvalidValue("table", table.shape, "a row for each step, a column for each device")
        self.table, self.domain = table, domain
        self.steps, self.n = table.shape

    def values(self, step: int, start: int, stop: int) -> NDArray[Any]:
        return np.asarray(self._row(step)[start:stop])

    def truth(self, step: int) -> NDArray[np.float64]:
        row = self._row(step)
        if self.domain is None:
            return np.array([row.mean()])
        return np.bincount(row, minlength=self.domain) / self.n

    def _row(self, step: int) -> NDArray[Any]:
        if not 1 <= step <= len(self.table):
            raise InvalidValue("step", step, f"a step from 1 to {len(self.table)}")
        return np.asarray(self.table[step - 1])
