from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.random.source import Random


@pytest.fixture(scope="session")
def collect() -> Callable[[FrequencyOracle, list[int], int, int], list[Estimate]]:
    """Real estimates: the same people report again and again."""

    def run(oracle: FrequencyOracle, counts: list[int], repetitions: int, seed: int) -> list[Estimate]:
        people = np.repeat(np.arange(len(counts)), counts)
        reports = oracle.randomize(np.tile(people, repetitions), Random(seed=seed))
        n = people.size
        return [oracle.estimate(oracle.accumulate(reports[i * n : (i + 1) * n])) for i in range(repetitions)]

    return run


@pytest.fixture(scope="session")
def shares() -> Callable[..., Estimate]:
    """An estimate of given values, its noise linear in the share."""

    def make(value: object, floor: float = 1e-3, slope: float = 5e-4, n: int = 1000, **options: object) -> Estimate:
        noise = Noise(floor, slope)
        array = np.asarray(value, dtype=np.float64)
        return Estimate(array, np.full(array.shape, floor), n, **{"noise": noise, **options})  # type: ignore[arg-type]

    return make
