"""Estimates to post-process: given ones, those of real reports, and of ten crowds on which nothing was chosen."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.core.reports import Floats
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.random.source import Random

ORACLES = [kind for kind in MECHANISMS.values() if issubclass(kind, FrequencyOracle)]


def made(value: ArrayLike, slope: float = 0.002, floor: float = 0.01, n: int = 500, **options: Any) -> Estimate:
    """An estimate of given values, its noise linear in the share."""
    return Estimate(value, np.full(np.shape(value), floor), n, **{"noise": Noise(floor, slope), **options})


def collect(oracle: FrequencyOracle, counts: list[int], repetitions: int, seed: int) -> list[Estimate]:
    """Real estimates: the same people report again and again."""
    people = np.repeat(np.arange(len(counts)), counts)
    reports = oracle.randomize(np.tile(people, repetitions), Random(seed=seed))
    n = people.size
    return [oracle.estimate(oracle.accumulate(reports[i * n : (i + 1) * n])) for i in range(repetitions)]


SIZE, PEOPLE, RUNS = 64, 4000, 20
PLACES = np.arange(SIZE)
_DRAWS = np.random.default_rng(8)
WEIGHTS = {
    "all alike": np.ones(SIZE),
    "one value": (PLACES == 20) * 1.0,
    "half empty": (PLACES % 2) * 1.0,
    "geometric": 0.8**PLACES,
    "power law": 1 / (PLACES + 1.0) ** 1.2,
    "bell": np.exp(-(((PLACES - 25) / 8) ** 2) / 2),
    "two hills": np.exp(-(((PLACES - 12) / 4) ** 2) / 2) + 0.5 * np.exp(-(((PLACES - 45) / 6) ** 2) / 2),
    "ends": np.abs(PLACES - 31.5) ** 3,
    "few, at random": _DRAWS.dirichlet(np.full(SIZE, 0.05)),
    "many, at random": _DRAWS.dirichlet(np.full(SIZE, 2.0)),
}
"""How common each value is, but for a factor."""


def people_of(name: str) -> list[int]:
    """How many people have each value."""
    people = np.random.default_rng(5).choice(SIZE, PEOPLE, p=WEIGHTS[name] / WEIGHTS[name].sum())
    return np.bincount(people, minlength=SIZE).tolist()


def estimates_of(name: str, runs: int = RUNS, seed: int = 41) -> tuple[list[Estimate], Floats]:
    """Estimates of repeated reports of a crowd, and the truth."""
    counts = people_of(name)
    return collect(OLH(epsilon=1.0, domain=SIZE), counts, runs, seed), np.array(counts) / PEOPLE
