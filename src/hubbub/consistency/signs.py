"""Consistency of estimates of sparse ternary vectors: means from -1 to 1, frequencies that sum to at most s.

Each function returns new estimates, which are biased and marked so ("consistent").
"""

import numpy as np

from hubbub.consistency.normalise import adjusted, project_capped_simplex, shares_of
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate


def clip_means(means: Estimate) -> Estimate:
    """Means below -1 become -1, and those above 1 become 1. Each comes nearer to the truth or stays.

    Example:
        >>> clip_means(Estimate(value=[-1.5, 0.5], variance=[0.1, 0.1], n=9, kind="quantity")).value.tolist()
        [-1.0, 0.5]
    """
    return adjusted(means, np.clip(means.value, -1.0, 1.0))


def capped(frequencies: Estimate, most: float, *, exactly: bool = False) -> Estimate:
    """The nearest frequencies from 0 to 1 that sum to at most `most`: the number of entries a person may hold.

    `frequencies`: the shares of people who hold something at each position. `most`: how many positions a person holds
    at most. `exactly`: whether everyone is known to hold that many.

    Example:
        >>> estimate = Estimate(value=[1.25, 0.75, -0.25], variance=[0.1] * 3, n=9)
        >>> capped(estimate, 2).value.tolist(), capped(estimate, 1, exactly=True).value.tolist()
        ([1.0, 0.75, 0.0], [0.75, 0.25, 0.0])

    References
    ----------
    S. Wang, Li, Xin et al., 2023, section 7.1: every protocol's estimates are projected onto a capped simplex.
    """
    value = shares_of(frequencies)
    if not 0 <= most <= value.size:
        raise InvalidValue("most", most, f"a number from 0 to {value.size}")
    inside = np.clip(value, 0.0, 1.0)
    if exactly or inside.sum() > most:
        inside = project_capped_simplex(value, most)
    return adjusted(frequencies, inside)


def capped_signs(
    means: Estimate, frequencies: Estimate, most: float, *, exactly: bool = False
) -> tuple[Estimate, Estimate]:
    """Means and frequencies that are consistent: the shares of +1 and of -1 at each position are projected together.

    The shares are (frequency + mean)/2 and (frequency - mean)/2. In the result no mean exceeds its frequency.
    """
    if means.value.shape != frequencies.value.shape or means.kind != "quantity":
        raise InvalidValue("means", means.value.shape, f"means of the same positions, {frequencies.value.shape}")
    total, gap = shares_of(frequencies), means.value
    both = Estimate(np.concatenate([total + gap, total - gap]) / 2, np.zeros(2 * gap.size), means.n)
    plus, minus = capped(both, most, exactly=exactly).value.reshape(2, -1)
    return adjusted(means, plus - minus), adjusted(frequencies, plus + minus)


def conditional_means(means: Estimate, frequencies: Estimate) -> Estimate:
    """The mean among those who hold something at each position, from consistent means and frequencies.

    Clipped to -1..1; where the frequency is 0 the variance is infinite. The variance ignores the covariance of mean and
    frequency, which would only make it smaller. (From a sketch: `estimate(sketch, of="conditional")`.)
    """
    share = shares_of(frequencies)
    if means.value.shape != share.shape:
        raise InvalidValue("means", means.value.shape, f"means of the same positions, {share.shape}")
    positive = share > 0
    divisor = np.where(positive, share, 1.0)
    value = np.where(positive, np.clip(means.value / divisor, -1.0, 1.0), 0.0)
    variance = np.where(positive, (means.variance + value**2 * frequencies.variance) / divisor**2, np.inf)
    return Estimate(value, variance, means.n, bias="heuristic", kind="quantity", labels=means.labels)
