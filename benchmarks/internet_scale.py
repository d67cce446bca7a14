"""The laws by which docs/internet-scale.md extrapolates: error as 1/sqrt(n), work as n, sketches that do not grow."""

import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from measure import Result, short

import hubbub as hb

D, EPSILON, CHUNK = 1024, 1.0, 1 << 20
SPREAD = 6 * (2 / D) ** 0.5
"""Six standard deviations of the mean of D squared errors, over their variance."""


class Simulated(NamedTuple):
    """What n reports cost, and how far the shares were from the truth."""

    n: int
    randomising: float
    folding: float
    error: float
    stated: float
    sketch_bytes: int


def simulated(n: int) -> Simulated:
    """Reports of n people, a million at a time, whose shares fall as 1/rank."""
    oracle, rng = hb.OLH(epsilon=EPSILON, domain=D), hb.Random()
    shares = 1 / np.arange(1, D + 1)
    people = np.random.default_rng(1).permutation(
        np.repeat(np.arange(D), np.ceil(shares / shares.sum() * CHUNK).astype(int))
    )
    people, truth = people[:CHUNK], np.zeros(D)
    sketch, randomising, folding = oracle.empty(), 0.0, 0.0
    for start in range(0, n, CHUNK):
        values = people[: min(CHUNK, n - start)]
        truth += np.bincount(values, minlength=D)
        began = time.process_time()
        reports = oracle.randomize(values, rng)
        made = time.process_time()
        sketch = sketch + oracle.accumulate(reports)
        randomising, folding = randomising + made - began, folding + time.process_time() - made
    estimate = oracle.estimate(sketch)
    error = float(np.mean((estimate.value - truth / n) ** 2))
    return Simulated(n, randomising, folding, error, float(np.mean(estimate.variance)), len(sketch.to_bytes()))


def internet_scale(quick: bool) -> Iterator[Result]:
    """From 1e5 to 1e8 reports to one question."""
    sizes = [10**power for power in range(5, 7 if quick else 9)]
    simulated(sizes[0])  # compiles
    runs = [simulated(n) for n in sizes]
    for run in runs:
        what = f"OLH, n={short(run.n)}, d={D}, eps={EPSILON:g}"
        yield Result(
            what=f"{what}: mean squared error",
            unit="",
            ours=run.error,
            versus="its stated variance",
            theirs=run.stated,
            ratio=run.error / run.stated,
            least=1 - SPREAD,
            most=1 + SPREAD,
        )
        yield Result(what=f"{what}: folding a report", unit="ns", ours=1e9 * run.folding / run.n)
        yield Result(what=f"{what}: making a report", unit="ns", ours=1e9 * run.randomising / run.n)
        yield Result(what=f"{what}: the sketch", unit="bytes", ours=run.sketch_bytes, most=runs[0].sketch_bytes + 16)


if __name__ == "__main__":
    for result in internet_scale("--quick" in sys.argv):
        print(
            f"{result.what}: {result.ours:.4g} {result.unit}", "" if result.ratio is None else f"({result.ratio:.3f})"
        )
