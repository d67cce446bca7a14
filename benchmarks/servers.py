"""Aggregation: OLH against a C kernel and against the other libraries; Hadamard against the other library."""

from collections.abc import Iterator

import native
import numpy as np
from measure import Failure, Result, cpu_seconds
from peer_environment import best_peer, population

import hubbub as hb
from hubbub.kernels.support import hash_support

N, D, EPSILON = 100_000, 1024, 1.0
SIGMAS = 6  # a right answer is further off once in half a billion runs


def olh(quick: bool) -> Iterator[Result]:
    """Counting supports: n d hashes."""
    kind, by_hand = native.load()
    oracle = hb.OLH(epsilon=EPSILON, domain=D)
    reports = oracle.randomize(population(N, D), hb.Random())
    seeds, buckets = (np.ascontiguousarray(part) for part in (reports.public["seed"], reports.private["bucket"]))
    every = np.arange(D, dtype=np.uint64)

    differ = int(np.sum(by_hand(seeds, buckets, oracle.buckets, D) != oracle.accumulate(reports).counts))
    yield Result(what="OLH counts that differ from C's", unit="", ours=differ, versus=kind, most=0)

    best = cpu_seconds(
        {
            "C": lambda: by_hand(seeds, buckets, oracle.buckets, D),
            "kernel": lambda: hash_support(seeds, buckets, oracle.buckets, every),
            "accumulate": lambda: oracle.accumulate(reports),
        },
        repeats=15 if quick else 40,
    )
    yield Result.faster("OLH accumulate, n=1e5, d=1024", best["accumulate"], kind, best["C"], least=0.8)
    yield Result.faster("OLH kernel alone", best["kernel"], kind, best["C"])

    few = N // 10 if quick else N  # the others go report by report: their time is n times that of one
    name, seconds, held = best_peer("olh_server", few, D)
    _check(oracle, name, (held / few - float(oracle.rates[1])) / float(oracle.rates[0] - oracle.rates[1]), few)
    _check(oracle, "hubbub", oracle.estimate(oracle.accumulate(reports)).value[0], N)
    yield Result.faster("OLH accumulate, n=1e5, d=1024", best["accumulate"], name, seconds * N / few, least=500)


def hadamard(quick: bool) -> Iterator[Result]:
    """From reports to estimates, with the fast transform on both sides."""
    oracle = hb.Hadamard(epsilon=EPSILON, domain=D)
    reports = oracle.randomize(population(N, D), hb.Random())
    best = cpu_seconds({"ours": lambda: oracle.estimate(oracle.accumulate(reports))}, repeats=20)
    name, seconds, held = best_peer("hadamard_server", N, D)
    _check(oracle, name, held / N, N)
    _check(oracle, "hubbub", oracle.estimate(oracle.accumulate(reports)).value[0], N)
    yield Result.faster("Hadamard accumulate and estimate, n=1e5, d=1024", best["ours"], name, seconds, least=5)


def _check(oracle: hb.OLH | hb.Hadamard, who: str, share: float, n: int) -> None:
    """A fast wrong answer is no answer."""
    truth = float(np.mean(population(n, D) == 0))
    if abs(share - truth) > SIGMAS * oracle.variance(n, truth) ** 0.5:
        raise Failure(f"{who} estimates the share of value 0 as {share:.3f}, and it is {truth:.3f}.")
