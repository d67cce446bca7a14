"""Randomising on the device: n reports of one value each, against the other libraries."""

from collections.abc import Iterator

from measure import Result, cpu_seconds
from peer_environment import best_peer, population

import hubbub as hb

N, D, EPSILON = 100_000, 1024, 1.0
TARGETS = {"OLH": 10, "OUE": 20, "GRR": 3}


def clients(quick: bool) -> Iterator[Result]:
    """The secure generator on our side, each library's own on the other."""
    values, rng = population(N, D), hb.Random()
    few = N // 10 if quick else N  # the others go report by report: their time is n times that of one
    for name, least in TARGETS.items():
        oracle = getattr(hb, name)(epsilon=EPSILON, domain=D)
        ours = cpu_seconds({"ours": lambda oracle=oracle: oracle.randomize(values, rng)}, repeats=10)["ours"]
        peer, seconds, _ = best_peer(f"{name.lower()}_client", few, D)
        yield Result.faster(f"{name} randomize, n=1e5, d=1024", ours, peer, seconds * N / few, least=least)
