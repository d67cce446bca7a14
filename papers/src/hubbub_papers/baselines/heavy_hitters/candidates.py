"""Candidates that are not listed in memory: all strings that extend one of some prefixes by a number of bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Extensions:
    """All strings that are one of the prefixes, followed by `bits` more bits.

    Parameters
    ----------
    prefixes
        Different integers.
    bits
        The number of bits that follow.
    """

    prefixes: NDArray[Any]
    bits: int

    @classmethod
    def everything(cls, bits: int) -> Extensions:
        """All strings of this many bits."""
        return cls(np.zeros(1, dtype=np.uint64), bits)

    def __post_init__(self) -> None:
        prefixes = np.asarray(self.prefixes)
        object.__setattr__(self, "prefixes", prefixes if prefixes.dtype == object else prefixes.astype(np.uint64))

    @property
    def size(self) -> int:
        """The number of strings."""
        return len(self.prefixes) << self.bits

    def rows(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """The index of the prefix that each code extends, -1 if there is none."""
        stems = self._stems(codes)
        order = np.argsort(self.prefixes, kind="stable")
        places = np.searchsorted(self.prefixes[order], stems)
        rows = order[np.minimum(places, len(order) - 1)]
        return np.where(self.prefixes[rows] == stems, rows, -1)

    def within(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each code is among the candidates."""
        return np.asarray(self.rows(codes) >= 0)

    def extended(self, rows: NDArray[np.int64], more: NDArray[Any]) -> NDArray[Any]:
        """The codes of the prefixes at these indices, each followed by the bits `more`."""
        if self.prefixes.dtype == object:
            return np.asarray((self.prefixes[rows] << self.bits) | more.astype(object))
        return np.asarray((self.prefixes[rows] << np.uint64(self.bits)) | more.astype(np.uint64))

    def listed(self) -> NDArray[Any]:
        """All codes, prefix by prefix."""
        rows = np.repeat(np.arange(len(self.prefixes)), 1 << self.bits)
        return self.extended(rows, np.tile(np.arange(1 << self.bits), len(self.prefixes)))

    def drawn(self, number: int, held: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Different candidates that are none of the codes in `held`, at random."""
        taken = set(held.tolist())
        chosen: list[int] = []
        while len(chosen) < number:
            rows = rng.integers(len(self.prefixes), size=2 * number)
            for code in self.extended(rows, rng.integers(1 << self.bits, size=2 * number, dtype=np.uint64)).tolist():
                if code not in taken and len(chosen) < number:
                    chosen.append(code)
                    taken.add(code)
        return np.array(chosen, dtype=self.prefixes.dtype)

    def _stems(self, codes: NDArray[Any]) -> NDArray[Any]:
        if codes.dtype == object:
            return codes >> self.bits
        return codes >> np.uint64(self.bits) if self.bits < 64 else np.zeros_like(codes)
