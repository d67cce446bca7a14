"""One place sets numba's options for every kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hubbub.core.errors import needs

with needs("analytics"):
    import numba


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
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba found no place to keep the compiled code
        return numba.njit(nogil=True)(function)


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a piece that kernels call."""
    return numba.njit(nogil=True)(function)
