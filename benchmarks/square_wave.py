"""EM and EMS for square waves of 1,024 points, to convergence: CPU seconds, against plain C and against numpy."""

import ctypes
import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import BUILD, HERE, Failure, Result, cpu_seconds, short
from native import compiler

from hubbub import Random, SquareWave
from hubbub.kernels.estimators import MOST, most_likely

POINTS = 1024
REPORTS = 100_000
MOST_SECONDS = 0.5
STOP = 1e-3


def square_wave(quick: bool) -> Iterator[Result]:
    """The same reports, the same iterations, the same stop: a skewed crowd at epsilon 1."""
    wave = SquareWave(epsilon=1.0, low=0.0, high=100.0, cells=POINTS - 1)
    crowd = np.random.default_rng(1).gamma(2.0, 8.0, REPORTS).clip(0, 100)
    counts = wave.accumulate(wave.randomize(crowd, Random(seed=1))).counts
    near, far = wave.rates
    library = _library()
    for name, smoothing, stop in (("EMS", 0.25, STOP), ("EM", 0.0, STOP * np.e)):

        def ours(smoothing: float = smoothing, stop: float = stop) -> tuple[np.ndarray, int]:
            return most_likely(counts, band=wave.band, near=near, far=far, smoothing=smoothing, tolerance=stop)

        def plain_c(smoothing: float = smoothing, stop: float = stop) -> np.ndarray:
            shares = np.full(POINTS, 1 / POINTS)
            given = counts / counts.sum()
            library.expectation_maximisation(
                given, given.size, POINTS, wave.band, near, far, smoothing, stop / REPORTS, MOST, shares
            )
            return shares / shares.sum()

        shares, iterations = ours()
        if not np.allclose(shares, plain_c(), rtol=0, atol=1e-9):
            raise Failure(f"{name} in C and the kernel do not come to the same distribution.")
        spent = cpu_seconds({"ours": ours, "C": plain_c}, 3 if quick else 10)
        what = f"{name}, d=1,024, n={short(REPORTS)}, {iterations} iterations"
        yield Result(what=what, unit="s", ours=spent["ours"], most=MOST_SECONDS)
        yield Result.faster(what, spent["ours"], "plain C, -O3, prefix sums", spent["C"], least=0.8)
    yield _against_numpy(wave, counts)


def _against_numpy(wave: SquareWave, counts: np.ndarray) -> Result:
    """As in a textbook: two products with the matrix of probabilities an iteration; a hundred of them."""
    every = wave.outputs()
    if every is None:
        raise Failure("A square wave does not list its reports.")
    matrix = np.exp(wave.log_prob(every, wave.points))
    near, far = wave.rates
    given, rounds = counts / counts.sum(), 100

    def plain() -> np.ndarray:
        shares = np.full(POINTS, 1 / POINTS)
        for _ in range(rounds):
            shares = shares * (matrix.T @ (given / (matrix @ shares)))
        return shares

    def ours() -> tuple[np.ndarray, int]:
        return most_likely(counts, band=wave.band, near=near, far=far, smoothing=0.0, tolerance=STOP)

    spent, iterations = cpu_seconds({"numpy": plain, "ours": ours}, 3), ours()[1]
    each, theirs = spent["ours"] / iterations, spent["numpy"] / rounds
    return Result.faster("an iteration of EM, d=1,024", each, "numpy, the whole matrix", theirs, least=20)


def _library() -> Any:
    target = BUILD / "square_wave.so"
    target.parent.mkdir(exist_ok=True)
    command = [compiler(), "-O3", "-std=c11", "-shared", "-fPIC", "-o", str(target), str(HERE / "square_wave.c"), "-lm"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        raise Failure("The C compiler cannot compile benchmarks/square_wave.c.")
    library = ctypes.CDLL(str(target.resolve()))
    floats = np.ctypeslib.ndpointer(np.float64, ndim=1, flags="C_CONTIGUOUS")
    integer, double = ctypes.c_int64, ctypes.c_double
    library.expectation_maximisation.restype = None
    library.expectation_maximisation.argtypes = [floats, *[integer] * 3, *[double] * 4, integer, floats]
    return library
