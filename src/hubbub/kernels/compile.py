"""One place sets numba's options for every kernel, and runs kernels on every core."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hubbub.core.errors import needs
from hubbub.core.reports import Array, Ints

with needs("analytics"):
    import numba


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop: without the GIL, cached on disk where a folder can be written."""
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba found no place to keep the compiled code
        return numba.njit(nogil=True)(function)


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a piece that kernels call."""
    return numba.njit(nogil=True)(function)


def unchecked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a piece that kernels call, where a division by 0 gives infinity: without a check it vectorises."""
    return numba.njit(nogil=True, error_model="numpy")(function)


def in_threads(count: Callable[[int, int], Ints], rows: int, least: int) -> Ints:
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


def readonly(array: Array, dtype: Any) -> Array:
    """A contiguous view that cannot be written: numba compiles a kernel once for those, and again for the others."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view
