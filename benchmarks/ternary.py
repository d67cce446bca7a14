"""Sparse ternary vectors: the servers of Collision and CoCo against OLH's, hash for hash; the online ExSub client."""

from collections.abc import Iterator

import numpy as np
from measure import Result, cpu_seconds

import hubbub as hb
from hubbub.kernels.support import hash_support

N, D, SPARSITY = 100_000, 512, 8


def ternary(quick: bool) -> Iterator[Result]:
    """Counting supports, and stepping many devices."""
    repeats, rng = 8 if quick else 20, hb.Random()
    values = hb.Ternary.sparse(
        (np.arange(N)[:, None] + np.arange(SPARSITY) * (D // SPARSITY)) % D, np.ones((N, SPARSITY)), dimension=D
    )
    sketches, every = {}, np.arange(2 * D, dtype=np.uint64)
    for kind in (hb.Collision, hb.CoCo):
        mechanism = kind(epsilon=1.0, dimension=D, sparsity=SPARSITY)
        reports = mechanism.randomize(values, rng)
        sketches[kind.__name__] = lambda mechanism=mechanism, reports=reports: mechanism.accumulate(reports)
    seeds, buckets = rng.uint64(N), rng.below(4, N).astype(np.uint8)
    best = cpu_seconds({"OLH": lambda: hash_support(seeds, buckets, 4, every), **sketches}, repeats)
    rate = 2 * N * D / best["OLH"] / 1e9
    for name, hashes in (("Collision", 2 * N * D), ("CoCo", N * D)):  # one hash of CoCo's answers for both signs
        ours = hashes / best[name] / 1e9
        yield Result(
            what=f"{name} accumulate, n=1e5, d={D}",
            unit="G hashes/s",
            ours=ours,
            versus="OLH kernel",
            theirs=rate,
            ratio=ours / rate,
            least=0.7,
        )
    for d, steps in ((16, 32), (1, 128)):
        online = hb.OnlineExSub(hb.ExSub(epsilon=1.0, dimension=d * steps, sparsity=SPARSITY))
        entries = np.zeros((N, d), dtype=np.int8)
        entries[np.arange(0, N, 4), np.arange(0, N, 4) % d] = 1
        state = online.start(N, rng)
        best = cpu_seconds({"step": lambda: online.step(state, entries, rng)}, repeats)  # noqa: B023
        yield Result(
            what=f"online ExSub, 1e5 devices, {d} entries a step",
            unit="M entries/s",
            ours=N * d / best["step"] / 1e6,
            least=50,
        )
