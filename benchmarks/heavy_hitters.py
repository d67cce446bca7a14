"""The prefix extending method, all of it, against the kernel of OLH alone for the same number of hashes."""

import time
from collections.abc import Iterator

import numpy as np
from measure import Failure, Result, short

from hubbub import Random
from hubbub.kernels.support import hash_support
from hubbub.protocols.heavy_hitters.prefixes import Integers, PrefixPlan
from hubbub.rehearse.top import run_plan

BITS, K, EPSILON = 64, 32, 2.0
MOST_RATIO = 1.5


def heavy_hitters(quick: bool) -> Iterator[Result]:
    """People's reports, the search and the estimates: CPU seconds, as a multiple of what the hashes alone take."""
    n = 10**5 if quick else 10**6
    plan = PrefixPlan(encoding=Integers(BITS), k=K, epsilon=EPSILON)
    rng = np.random.default_rng(1)
    names, shares = rng.integers(0, 1 << 63, 400).astype(np.uint64), np.exp(-0.05 * np.arange(400))
    values = names[rng.choice(400, n, p=shares / shares.sum())]
    run_plan(plan, values[:100], Random(seed=1))  # compiles
    start = time.process_time()
    found = run_plan(plan, values, Random(seed=1))
    ours = time.process_time() - start
    if not quick and len(set(found.values) & set(names[:K].tolist())) < K // 2:
        raise Failure("PEM finds less than half of the 32 most common values.")
    what = f"PEM, n={short(n)}, m={BITS}, k={K}, {plan.queries:,} queries"
    alone = _hashes_alone(plan, values)
    yield Result(
        what=what,
        unit="s",
        ours=ours,
        versus="OLH's kernel, as many hashes",
        theirs=alone,
        ratio=ours / alone,
        most=MOST_RATIO,
    )


def _hashes_alone(plan: PrefixPlan, values: np.ndarray) -> float:
    """The time of counting as many supports in one call a group."""
    group = len(values) // len(plan.lengths)
    reports = plan.oracle.randomize(values[:group], Random(seed=2))
    seeds, buckets, spent = reports.public["seed"], reports.private["bucket"], 0.0
    known, prefixes = 0, 1
    for length in plan.lengths:
        candidates = prefixes << (length - known)
        codes = np.arange(candidates, dtype=np.uint64)
        start = time.process_time()
        hash_support(seeds, buckets, plan.oracle.buckets, codes)
        spent += time.process_time() - start
        known, prefixes = length, min(plan.k, candidates)
    return spent
