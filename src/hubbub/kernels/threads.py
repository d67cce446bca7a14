"""Kernels on every core: rows are cut into slices, one thread each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import needs

with needs("analytics"):
    import numba


def in_threads(count: Callable[[int, int], NDArray[np.int64]], rows: int, least: int) -> NDArray[np.int64]:
    """Sum `count(start, stop)` over slices of the rows, each of at least `least` of them.

    Kernels run without the interpreter's lock. The threads end with the call, at a cost of some 0.3 ms: numba's own
    would spin between calls, and could serve neither two callers at once nor a forked process.
    """
    cores = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined] # what this process may use, or the user says
    tasks = max(1, min(cores, rows // least))
    if tasks == 1:
        return count(0, rows)
    cuts = [task * rows // tasks for task in range(tasks + 1)]
    with ThreadPoolExecutor(tasks) as pool:
        return np.asarray(sum(pool.map(count, cuts, cuts[1:])), dtype=np.int64)


def readonly(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """A contiguous view that cannot be written: numba compiles a kernel once for those, and again for the others."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view
