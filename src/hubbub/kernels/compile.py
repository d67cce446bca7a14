"""One place sets numba's options for every kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hubbub.core.errors import MissingDependency

try:
    import numba
except ImportError:
    raise MissingDependency("numba", "analytics") from None

__all__ = ["inline", "kernel", "parallel_kernel", "prange", "tasks_for"]

prange = numba.prange


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop: without the GIL, cached on disk where a folder can be written.

    Example:
        >>> import numpy as np
        >>> @kernel
        ... def total(x):
        ...     s = np.int64(0)
        ...     for i in range(x.size):
        ...         s += x[i]
        ...     return s
        >>> int(total(np.arange(4)))
        6
    """
    return _compile(function, parallel=False)


def parallel_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over `prange` for all cores.

    Example:
        >>> import numpy as np
        >>> @parallel_kernel
        ... def squares(out):
        ...     for i in prange(out.size):
        ...         out[i] = i * i
        >>> x = np.zeros(3); squares(x); x.tolist()
        [0.0, 1.0, 4.0]
    """
    return _compile(function, parallel=True)


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a piece that kernels call.

    Example:
        >>> @inline
        ... def double(x):
        ...     return 2 * x
        >>> double(4)
        8
    """
    return numba.njit(nogil=True)(function)


def tasks_for(rows: int, block: int) -> int:
    """How many parallel tasks `rows` are worth, at least `block` of them each.

    Example:
        >>> tasks_for(10, 2048)
        1
    """
    return max(1, min(numba.get_num_threads(), rows // block))


def _compile(function: Callable[..., Any], *, parallel: bool) -> Callable[..., Any]:
    try:
        return numba.njit(cache=True, nogil=True, parallel=parallel)(function)
    except RuntimeError:  # numba found no place to keep the compiled code
        return numba.njit(nogil=True, parallel=parallel)(function)
