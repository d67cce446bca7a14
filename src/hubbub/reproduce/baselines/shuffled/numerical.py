"""From a central epsilon to a mechanism by the numerical bounds: what is ours in Figures 9.3 and 9.4."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.solh import SOLH
from hubbub.mechanisms.frequency.unary import SUE
from hubbub.privacy.amplification.choose import MOST_BUCKET_BITS
from hubbub.privacy.amplification.fakes import mean_variance
from hubbub.privacy.amplification.inverse import local_epsilon
from hubbub.reproduce.baselines.shuffled.comparators import ByOracle, HistogramMethod, HistogramSetting


def numerical_sh(given: HistogramSetting) -> HistogramMethod:
    """GRR with the largest local epsilon that a valid bound allows.

    Example:
        >>> numerical_sh(HistogramSetting(0.5, 1e-6, n=10_000, domain=10)).oracle.epsilon > 4
        True
    """
    return ByOracle(_largest(lambda local: GRR(epsilon=local, domain=given.domain), given))


def numerical_rap(given: HistogramSetting) -> HistogramMethod:
    """Symmetric unary encoding likewise.

    Example:
        >>> numerical_rap(HistogramSetting(0.5, 1e-6, n=10_000, domain=10)).oracle.epsilon > 4
        True
    """
    return ByOracle(_largest(lambda local: SUE(epsilon=local, domain=given.domain), given))


def numerical_solh(given: HistogramSetting) -> HistogramMethod:
    """SOLH likewise, with the number of buckets that gives the smallest variance.

    Example:
        >>> numerical_solh(HistogramSetting(0.5, 1e-6, n=100, domain=1000)).oracle.epsilon >= 0.5
        True
    """

    def with_bits(bits: int, quick: bool) -> FrequencyOracle:
        return _largest(lambda local: SOLH(epsilon=local, domain=given.domain, buckets=1 << bits), given, quick)

    best = min(range(1, MOST_BUCKET_BITS + 1), key=lambda bits: mean_variance(with_bits(bits, True), given.n))
    return ByOracle(with_bits(best, False))


def _largest(make: Callable[[float], FrequencyOracle], given: HistogramSetting, quick: bool = False) -> FrequencyOracle:
    found = local_epsilon(make, epsilon=given.epsilon, n=given.n, delta=given.delta, quick=quick)
    assert isinstance(found, FrequencyOracle)
    return found


NUMERICAL: dict[str, Callable[[HistogramSetting], HistogramMethod]] = {
    "SH": cache(numerical_sh),
    "RAP": cache(numerical_rap),
    "SOLH": cache(numerical_solh),
}
"""The methods of the chapter that are mechanisms, by numerical bounds; each setting is searched once."""
