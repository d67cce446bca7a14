"""Random bits: the secure generator against numpy's fast insecure one."""

from collections.abc import Iterator

import numpy as np
from measure import Result, cpu_seconds

import hubbub as hb

SIZE = 1 << 20


def randomness(quick: bool) -> Iterator[Result]:
    """1 MiB at a time."""
    out, rng, pcg = np.empty(SIZE, dtype=np.uint8), hb.Random(), np.random.Generator(np.random.PCG64())
    words = SIZE // 8
    best = cpu_seconds(
        {
            "ours": lambda: [rng.fill(out) for _ in range(20)],
            "bytes": lambda: [pcg.bytes(SIZE) for _ in range(20)],
            "integers": lambda: [pcg.integers(0, 1 << 64, size=words, dtype=np.uint64) for _ in range(20)],
            "raw": lambda: [pcg.bit_generator.random_raw(words) for _ in range(20)],
        },
        repeats=10,
    )
    ours, theirs = (20 * SIZE / 1e9 / seconds for seconds in (best.pop("ours"), min(best.values())))
    yield Result(
        what="Random.fill",
        unit="GB/s",
        ours=ours,
        versus="numpy PCG64",
        theirs=theirs,
        ratio=ours / theirs,
    )
