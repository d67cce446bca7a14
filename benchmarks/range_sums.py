"""A sum over a box of two private columns, from stored HIO reports, against the hashes that it needs alone."""

from collections.abc import Iterator

import numpy as np
from measure import Failure, Result, cpu_seconds, short

from hubbub import Random
from hubbub.kernels.support import hash_support
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.ranges.hierarchy import HIO
from hubbub.protocols.ranges.table import RangeTable, Supports

N, SIZE, EPSILON = 1_000_000, 256, 2.0
QUERY = RangeQuery([(37, 164), (11, 200)], "price")
MOST_RATIO = 3.0


def range_sums(quick: bool) -> Iterator[Result]:
    """The first time that a box is asked for, and the second time, when its supports are known."""
    rng = np.random.default_rng(1)
    records, price = rng.integers(0, SIZE, (N, 2)), rng.exponential(20.0, N)
    hio = HIO(EPSILON, (Dimension.ordinal(SIZE),) * 2)
    reports = hio.randomize(records, Random(seed=1))
    table = RangeTable(hio, reports, {"price": price})
    counts = [
        (hio.oracle(term.level), reports.levels[term.level].reports, term.cells.astype(np.uint64))
        for term in hio.terms(QUERY.box).terms
    ]

    def first() -> None:
        table.supports = Supports()
        table.answer(QUERY)

    def alone() -> None:
        for oracle, given, cells in counts:
            if isinstance(oracle, LocalHashing):
                seeds, buckets = given.public["seed"], given.private["bucket"]
                hash_support(seeds, buckets, oracle.buckets, cells)

    answer = table.answer(QUERY)
    inside = [(records[:, column] >= a) & (records[:, column] <= b) for column, (a, b) in enumerate(QUERY.box)]
    if abs(answer.value[0] - price[inside[0] & inside[1]].sum()) > 6 * answer.stderr[0]:
        raise Failure("The sum over a box is further off than six standard errors.")
    best = cpu_seconds({"first": first, "alone": alone}, repeats=100 if quick else 300)
    best |= cpu_seconds({"again": lambda: table.answer(QUERY)}, repeats=40)
    what = f"SUM over a box of 2 columns, HIO, n={short(N)}"
    kernel = "OLH's kernel, as many hashes"
    ratio = best["first"] / best["alone"]
    yield Result(
        what=what, unit="s", ours=best["first"], versus=kernel, theirs=best["alone"], ratio=ratio, most=MOST_RATIO
    )
    yield Result.faster("the same box again", best["again"], "the first time", best["first"], least=1)
