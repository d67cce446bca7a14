"""Power and PowerNS: the expected shares given the estimates, with a power law as prior."""

from __future__ import annotations

import math

from hubbub.consistency.norm_sub import norm_sub
from hubbub.consistency.power_law import PowerLaw
from hubbub.consistency.shares import adjusted, noise_of, shares_of
from hubbub.core.estimate import Estimate


def power(estimate: Estimate) -> Estimate:
    """The posterior mean of each share, its prior a power law fitted to all of them.

    f_i = E[x | f~_i] with Pr[x] proportional to x^-s over x = 1/n, 2/n, ..., 1 and f~_i normal around x with variance
    Var*, that at share 0 (Eq 8.7). The chapter leaves open how s is fitted: here by maximum likelihood of the
    estimates under prior and noise together, s from 0 to 10. Every share is at least 1/n, and the sum is not
    constrained. The bias is called "consistent", since non-negativity is enforced; but the result depends on the prior,
    and can be poor where shares do not follow a power law. The variance stays that of the estimate before.

    Parameters
    ----------
    estimate
        Shares with the noise of their mechanism.

    Example:
        >>> from hubbub.core.noise import Noise
        >>> value = [0.5, 0.2, 0.1, 0.05, -0.03] + [0.01, -0.01] * 20
        >>> estimate = Estimate(value=value, variance=[4e-4] * 45, n=10_000, noise=Noise(4e-4, 0.0))
        >>> power(estimate).value[:6].round(3).tolist()
        [0.499, 0.197, 0.094, 0.019, 0.001, 0.002]

    References
    ----------
    Dissertation, section 8.1.5.
    """
    value = shares_of(estimate)
    deviation = math.sqrt(noise_of(estimate, "power").floor)
    return adjusted(estimate, PowerLaw.fit(value, estimate.n, deviation).means(value))


def power_ns(estimate: Estimate) -> Estimate:
    """`power`, then `norm_sub`: shares near a power law that are at least 0 and sum to 1.

    The chapter's choice for sums over sets of values. The variance stays that of the estimate before.

    Example:
        >>> from hubbub.core.noise import Noise
        >>> value = [0.5, 0.2, 0.1, 0.05, -0.03] + [0.01, -0.01] * 20
        >>> estimate = Estimate(value=value, variance=[4e-4] * 45, n=10_000, noise=Noise(4e-4, 0.0))
        >>> round(float(power_ns(estimate).value.sum()), 9)
        1.0

    References
    ----------
    Dissertation, section 8.1.5.
    """
    return norm_sub(power(estimate))
