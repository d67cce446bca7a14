"""Estimates from batches that contain fake reports."""

from dataclasses import replace

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.core.reports import Sketch
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.mechanisms.frequency.oracle import FrequencyOracle


def estimate_without_fakes(oracle: FrequencyOracle, sketch: Sketch, fakes: int) -> Estimate:
    """The shares of people, from a sketch of their reports together with `fakes` uniformly drawn ones.

    A fake report of local hashing supports a value as often as a real report about another value: it only adds to the
    size, and the shares are (n + fakes)/n times those of the sketch. A fake report of GRR is each value with
    probability 1/d, which is subtracted (Eq 9.5, which holds for GRR alone).
    """
    real = sketch.n - fakes
    if fakes < 0 or real < 1:
        raise InvalidValue("fakes", fakes, f"from 0 to {sketch.n - 1}, of {sketch.n} reports")
    p, q = (float(rate) for rate in oracle.rates)
    estimate, noise = oracle.estimate(sketch), noise_with_fakes(oracle, real, fakes)
    from_fakes = fakes * (_support(oracle) - q) / (p - q)  # in people
    value = (estimate.value * sketch.n - from_fakes) / real
    return replace(estimate, value=value, variance=noise.variance(np.clip(value, 0.0, 1.0)), n=real, noise=noise)


def noise_with_fakes(oracle: FrequencyOracle, n: int, fakes: int) -> Noise:
    """The second moments of an estimate from n people's reports and a number of fakes."""
    if not fakes:
        return oracle.noise(n)
    (p, q), single, hit = (float(rate) for rate in oracle.rates), oracle.noise(1), _support(oracle)
    covariance = -(hit**2) if isinstance(oracle, GRR) else 0.0  # one report of GRR supports one value
    return Noise(
        floor=(n * single.floor + fakes * hit * (1 - hit) / (p - q) ** 2) / n**2,
        slope=single.slope / n,
        pair_floor=(n * single.pair_floor + fakes * covariance / (p - q) ** 2) / n**2,
        pair_slope=single.pair_slope / n,
    )


def mean_variance(oracle: FrequencyOracle, n: int, fakes: int = 0) -> float:
    """The variance of a share from n people's reports, averaged over all values of the domain.

    A variance grows linearly with the share, and shares add up to 1: the mean is the same whatever people hold.
    """
    noise = noise_with_fakes(oracle, n, fakes)
    return noise.floor + noise.slope / oracle.size


def _support(oracle: FrequencyOracle) -> float:
    """The chance that a fake report supports a value."""
    if isinstance(oracle, GRR) and oracle.size is not None:
        return 1 / oracle.size
    if isinstance(oracle, LocalHashing):
        return 1 / oracle.buckets
    raise InvalidValue("oracle", type(oracle).__name__, "GRR or local hashing, whose fakes are uniform")
