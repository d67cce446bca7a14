"""The hand-written C kernel: compiled when the benchmark runs, called through ctypes."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import BUILD, HERE, Failure
from numpy.typing import NDArray

from hubbub.core.hashing import value_words

Support = Callable[[NDArray[np.uint64], NDArray[np.uint8], int, int], NDArray[np.int64]]


def compiler() -> str:
    """The C compiler."""
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path:
            return path
    raise Failure("The benchmark needs a C compiler, and none of cc, gcc and clang is on the PATH.")


def load() -> tuple[str, Support]:
    """What the kernel is, and the kernel: (seeds, buckets, g, d) to the support of each value."""
    library = _build("-mavx2")
    if library is not None and library.olh_avx2():
        return "C kernel, AVX2", _support(library)
    library = _build("-march=native")
    if library is None:
        raise Failure("The C compiler cannot compile benchmarks/olh.c.")
    return "C kernel, plain: no AVX2 here", _support(library)


def _build(flag: str) -> Any | None:
    target = BUILD / f"olh{flag.replace('=', '-')}.so"
    target.parent.mkdir(exist_ok=True)
    source = str(HERE / "olh.c")
    done = subprocess.run(
        [compiler(), "-O3", flag, "-std=c11", "-shared", "-fPIC", "-o", str(target), source],
        capture_output=True,
        check=False,
    )
    return None if done.returncode else ctypes.CDLL(str(Path(target).resolve()))


def _support(library: Any) -> Support:
    def pointer(dtype: Any) -> Any:
        return np.ctypeslib.ndpointer(dtype, ndim=1, flags="C_CONTIGUOUS")

    library.olh_support.restype = None
    library.olh_support.argtypes = [
        pointer(np.uint64),
        pointer(np.uint8),
        ctypes.c_int64,
        pointer(np.uint64),
        ctypes.c_int64,
        pointer(np.uint32),
        pointer(np.uint32),
        pointer(np.int64),
    ]

    def support(seeds: NDArray[np.uint64], buckets: NDArray[np.uint8], g: int, d: int) -> NDArray[np.int64]:
        edges = np.array([-(-(y << 32) // g) for y in range(g + 1)], dtype=np.uint64)
        counts = np.zeros(d, dtype=np.int64)
        words = value_words(np.arange(d, dtype=np.uint64))
        library.olh_support(seeds, buckets, len(seeds), edges, d, *words, counts)
        return counts

    return support
