"""Growth: time in proportion to the number of reports, memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from measure import Result, cpu_seconds, in_process, short

import hubbub as hb
from hubbub.core.reports import Reports

D, CHUNK = 256, 1_000_000
BAND = (0.7, 1.3)  # of the smallest size's cost a report; runs here differ by 15% on their own
MIB = 1 << 20


def growth(quick: bool) -> Iterator[Result]:
    """OLH over d=256: accumulation at three sizes, then a stream."""
    oracle = hb.OLH(epsilon=1.0, domain=D)
    sizes = (100_000, 1_000_000) if quick else (100_000, 1_000_000, 10_000_000)
    values, rng = np.arange(CHUNK) % D, hb.Random()
    reports = Reports.concat(oracle.randomize(values, rng) for _ in range(sizes[-1] // CHUNK))
    best = cpu_seconds({str(n): lambda n=n: oracle.accumulate(reports[:n]) for n in sizes}, repeats=5)
    cost = {n: best[str(n)] / n for n in sizes}
    for n in sizes[1:]:
        yield Result(
            what=f"OLH accumulate, cost a report, n={short(n)}, d={D}",
            unit="ns",
            ours=cost[n] * 1e9,
            versus=f"n={short(sizes[0])}",
            theirs=cost[sizes[0]] * 1e9,
            ratio=cost[n] / cost[sizes[0]],
            least=BAND[0],
            most=BAND[1],
        )

    few, many = (in_process("stream.py", n, CHUNK, D) for n in (2 * CHUNK, 10 * CHUNK if quick else 100 * CHUNK))
    what = f"OLH stream, n={short(many['n'])}, d={D}, chunks of 1e6"
    yield Result(what=f"{what}: peak memory", unit="MiB", ours=many["peak"] / MIB, most=1024)
    yield Result(
        what=f"{what}: peak memory",
        unit="MiB",
        ours=many["peak"] / MIB,
        versus=f"n={short(few['n'])}",
        theirs=few["peak"] / MIB,
        ratio=many["peak"] / few["peak"],
        most=1.1,
    )
    yield Result(what=f"{what}: CPU", unit="s", ours=many["cpu"])
