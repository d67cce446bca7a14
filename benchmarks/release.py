"""ToPS in batch: values a second a core through perturber and smoother, against plain C, and its memory."""

import ctypes
import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import BUILD, HERE, Failure, Result, cpu_seconds, in_process, short
from native import compiler

from hubbub import Random
from hubbub.curator.tops import ToPS
from hubbub.kernels.curator import FINE, publish_values

THETA = 100.0
MOST_MEMORY = 32  # MiB


def release(quick: bool) -> Iterator[Result]:
    n = 1 << (20 if quick else 23)
    values = np.random.default_rng(1).gamma(1.5, 25.0, n).clip(0, 2000)
    for pruned in (0, 1, 2):
        tops = ToPS(epsilon=0.05, bound=2000.0, pruned=pruned)
        spent = cpu_seconds({"ours": lambda tops=tops: tops.start(Random(), theta=THETA).push_many(values)}, 3)["ours"]
        least = None if pruned == 0 else 10.0
        what = f"ToPS in batch, n={short(n)}, s={pruned}" + (": a draw a value" if pruned == 0 else "")
        yield Result(what=what, unit="M values/s", ours=n / spent / 1e6, least=least)
    yield _against_c(values[: 1 << 20])
    peak = in_process("release_memory.py")
    yield Result(what="one tree of r=2^20, s=0: memory", unit="MiB", ours=peak / (1 << 20), most=MOST_MEMORY)


def _against_c(values: np.ndarray) -> Result:
    tops = ToPS(epsilon=0.05, bound=2000.0, pruned=1)
    noise = np.concatenate([tops.tree.noise(Random(seed=k)) for k in range(values.size // tops.tree_length)])
    library = _library()

    def plain() -> np.ndarray:
        out = np.empty(values.size)
        library.publish(values, values.size, THETA, tops.tree.cells, FINE, noise, tops.block, THETA / 2, out)
        return out

    def ours() -> np.ndarray:
        memory = np.array([THETA / 2, 0.0, 0.0])
        return publish_values(
            values, THETA, tops.tree.cells, noise, tops.block, 0, 0, "recent", 0.5, memory, np.zeros(1)
        )[0]

    if not np.array_equal(plain(), ours()):
        raise Failure("The C loop and the kernel do not publish the same numbers.")
    spent = cpu_seconds({"C": plain, "ours": ours}, 20)
    return Result.faster("publish 1e6 values, noise given, s=1", spent["ours"], "plain C, -O3", spent["C"], least=0.6)


def _library() -> Any:
    target = BUILD / "release.so"
    target.parent.mkdir(exist_ok=True)
    command = [compiler(), "-O3", "-std=c11", "-shared", "-fPIC", "-o", str(target), str(HERE / "release.c")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        raise Failure("The C compiler cannot compile benchmarks/release.c.")
    library = ctypes.CDLL(str(target.resolve()))

    def pointer(dtype: Any) -> Any:
        return np.ctypeslib.ndpointer(dtype, ndim=1, flags="C_CONTIGUOUS")

    library.publish.restype = None
    floats, integer, double = pointer(np.float64), ctypes.c_int64, ctypes.c_double
    library.publish.argtypes = [floats, integer, double, integer, integer, pointer(np.int64), integer, double, floats]
    return library
