"""Simulated devices that hold a value a step: the only place where a stream's truth is known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue


class Stream(ABC):
    """n devices and their values over time, in whatever order; which is which does not matter, so it stays fixed."""

    n: int
    steps: int | None
    """How many steps there are; None without end."""

    @abstractmethod
    def values(self, step: int, start: int, stop: int) -> Any:
        """The values that the devices start to stop-1 hold at a step, counted from 1: an array, or `ItemSets`."""

    @abstractmethod
    def truth(self, step: int) -> NDArray[np.float64]:
        """The population's shares, or its mean, at a step."""


class ArrayStream(Stream):
    """A stream held in an array of steps by devices; a memory-mapped one is read as it is needed.

    Parameters
    ----------
    table
        One row a step, one column a device: codes from 0 to domain-1, or numbers where `domain` is None.
    domain
        How many codes there are.

    Example:
        >>> stream = ArrayStream(np.array([[0, 1, 1, 1]]), domain=2)
        >>> stream.truth(1).tolist()
        [0.25, 0.75]
    """

    def __init__(self, table: NDArray[Any], domain: int | None = None) -> None:
        if table.ndim != 2 or 0 in table.shape:
            raise InvalidValue("table", table.shape, "one row a step, one column a device")
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
