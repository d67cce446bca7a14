"""Streams of devices whose values follow a process: shares of ones, or means of normal numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.data.processes import normals
from hubbub.simulate.devices import ArrayStream


def binary_stream(process: NDArray[np.float64], n: int, rng: Random) -> ArrayStream:
    """At step t exactly round(p_t n) of n devices, drawn anew at random, have the value 1 and the others 0."""
    table = np.zeros((len(process), n), dtype=np.uint8)
    for row, p in zip(table, process, strict=True):
        ones = round(float(p) * n)
        if ones:
            keys = rng.uint64(n)
            row[np.argpartition(keys, ones - 1)[:ones]] = 1
    return ArrayStream(table, domain=2)


def normal_stream(process: NDArray[np.float64], n: int, rng: Random, *, deviation: float = 10.0) -> ArrayStream:
    """At step t every device has a normally distributed number of mean p_t."""
    table = np.empty((len(process), n), dtype=np.float32)
    for row, p in zip(table, process, strict=True):
        row[:] = p + deviation * normals(n, rng)
    return ArrayStream(table)
