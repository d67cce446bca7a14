"""MLE-Apx: the most likely shares under normal noise whose variance grows with the share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.consistency.shares import adjusted, noise_of, shares_of
from hubbub.consistency.simplex import project_simplex
from hubbub.core.estimate import Estimate

Floats = NDArray[np.float64]


def mle_apx(estimate: Estimate) -> Estimate:
    """The shares of at least 0, summing to 1, that minimise sum (f_i - f~_i)^2 / (floor + slope f_i).

    With x = (1 - sum f~)/(k floor + slope) over the k shares above 0, f_i = (floor x + f~_i)/(1 - slope x), Eq 8.6 (x,
    gamma and delta are printed with the opposite sign of the slope, and then the shares do not sum to 1). Shares that
    come out negative become 0, and the rest is solved again. With slope 0 this is `norm_sub`. The noise is that of the
    randomisation alone, without the sampling term: the shares among those who answered obey the constraints too. The
    variance stays that of the estimate before.

    Parameters
    ----------
    estimate
        Shares with the noise of their mechanism. An estimate at which floor + slope f is not above 0 has no normal
        likelihood (no pure oracle can produce one): then the slope is left out.

    Example:
        >>> from hubbub.core.noise import Noise
        >>> estimate = Estimate(value=[0.75, 0.5, -0.25], variance=[0.01] * 3, n=100, noise=Noise(0.01, 0.02))
        >>> mle_apx(estimate).value.round(4).tolist()
        [0.6111, 0.3889, 0.0]

    References
    ----------
    Dissertation, section 8.1.4.
    """
    value = shares_of(estimate)
    noise = noise_of(estimate, "mle_apx")
    if not (noise.floor + noise.slope * value > 0).all():
        return adjusted(estimate, project_simplex(value))
    return adjusted(estimate, _most_likely(value, noise.slope / noise.floor))


def _most_likely(value: Floats, slope: float) -> Floats:
    """The minimum in units of the floor, by the active-set method: a share that is dropped would stay negative."""
    active = np.arange(value.size)
    while True:
        estimates = value[active]
        total = estimates.sum()
        # Eq 8.6 with x substituted, numerator and denominator multiplied by k + slope: no step divides by 0.
        shares = ((1 - total) + estimates * (active.size + slope)) / (active.size + slope * total)
        if (shares >= 0).all():
            out = np.zeros_like(value)
            out[active] = shares
            return out
        active = active[shares > 0]
