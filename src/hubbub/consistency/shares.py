"""The beginning and the end of every method: reading the shares of an estimate, and making a new one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise

Floats = NDArray[np.float64]


def shares_of(estimate: Estimate) -> Floats:
    """The shares of an estimate, refused if they are not shares or not finite."""
    if estimate.kind != "share":
        raise InvalidValue("kind", estimate.kind, "share: only shares are known to be at least 0 and to sum to 1")
    if estimate.value.ndim != 1 or not estimate.value.size or not np.isfinite(estimate.value).all():
        raise InvalidValue("value", estimate.value, "finite shares, at least one")
    return estimate.value


def noise_of(estimate: Estimate, method: str) -> Noise:
    """The noise of an estimate; refused if it is missing or has a floor of 0, as estimates of unknown noise do."""
    noise = estimate.noise
    if noise is None or not noise.floor > 0:
        raise InvalidValue("noise", noise, f"the noise of the mechanism, with a floor above 0, for {method}")
    return noise


def adjusted(estimate: Estimate, value: Floats) -> Estimate:
    """The same estimate with values that constraints have changed: it is biased.

    The variance and the noise stay those of the estimate before. Where the method is a projection onto a set that
    holds the truth (`base_pos`, `norm_sub`), the sum of these variances still bounds the expected squared distance
    to the truth; elsewhere they say how noisy the reports were, not how far off the result is.
    """
    return replace(estimate, value=value, bias="heuristic" if estimate.bias == "heuristic" else "consistent")
