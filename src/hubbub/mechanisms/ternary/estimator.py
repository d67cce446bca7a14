"""The estimator of every ternary mechanism that counts supports of signs: means, frequencies and conditional means."""

from dataclasses import replace

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Sketch
from hubbub.mechanisms.ternary.ternary import TernaryMechanism


def means(mechanism: TernaryMechanism, sketch: Sketch) -> Estimate:
    """The mean of every position, of vectors that hold nothing but -1, 0 and 1."""
    counts, n, rates = sketch.counts, sketch.n, mechanism.rates
    if not (counts.min() >= 0 and counts.max() <= n):
        raise InvalidValue("counts", [int(counts.min()), int(counts.max())], f"0 to {n}, as n = {n}")
    gap, supported = mechanism.gap("mean"), counts.sum(axis=0) / n
    value = (counts[0] - counts[1]) / n / gap
    counts_frequency = "frequency" in mechanism.answers
    if counts_frequency:
        share = np.clip((supported - 2 * float(rates.false)) / mechanism.gap("frequency"), 0.0, 1.0)
    else:
        share = np.minimum(np.abs(value), 1.0)  # the share of holders is no smaller than the mean
    # The supports themselves tell most of a report's second moment; the noisy frequency only a small rest of it.
    both = float(rates.both_missing) * (1 - share) + float(rates.both_held) * share
    variance = (supported - 2 * both) / gap**2 - share
    return Estimate(
        value,
        np.maximum(variance, min(mechanism.variances("mean")) / 2) / n,
        n,
        bias=mechanism.bias,
        kind="quantity",
        spread=np.maximum(share - value**2, 0.0) if counts_frequency else None,
        bounds=(-1.0, 1.0),
    )


def with_rounding(mean: Estimate) -> Estimate:
    """The same means, of values that may be any number from -1 to 1 and were rounded to signs.

    Rounding a number v has the variance 1 - v^2. Over all people, that and the variance of their values add up to
    frequency - mean^2, whatever the values are. So the returned variance bounds the error of rounding from above, and
    already contains what people differ by: its `spread` is 0.
    """
    spread = mean.spread if mean.spread is not None else 1 - np.minimum(mean.value**2, 1.0)
    return replace(mean, variance=mean.variance + spread / mean.n, spread=np.zeros_like(mean.value))


def frequencies(mechanism: TernaryMechanism, sketch: Sketch) -> Estimate:
    """The share of people that hold something, at every position."""
    n, rates = sketch.n, mechanism.rates
    value = (sketch.counts.sum(axis=0) / n - 2 * float(rates.false)) / mechanism.gap("frequency")
    variance = np.maximum(mechanism.frequency_noise(n).variance(value), min(mechanism.variances("frequency")) / n)
    # Without the noise: how errors of two positions go together depends on how many people hold both.
    return Estimate(value, variance, n, bias=mechanism.bias)


def conditional_means(mechanism: TernaryMechanism, mean: Estimate, frequency: Estimate) -> Estimate:
    """mean/frequency, with the variance of the delta method; infinite where the estimated frequency is not above 0.

    Cov(mean, frequency) = mean (1 - p_true - p_reverse) / (n (p_true + p_reverse - 2 p_false)).
    """
    rates = mechanism.rates
    positive = frequency.value > 0
    share = np.where(positive, frequency.value, 1.0)
    value = np.where(positive, mean.value / share, 0.0)
    covariance = mean.value * float(1 - rates.true - rates.reverse) / (mean.n * mechanism.gap("frequency"))
    numerator = mean.variance - 2 * value * covariance + value**2 * frequency.variance
    variance = np.where(positive, np.maximum(numerator, 0.0) / share**2, np.inf)
    # A ratio of two unbiased estimates is biased.
    return Estimate(value, variance, mean.n, bias="heuristic", kind="quantity", bounds=(-1.0, 1.0))
