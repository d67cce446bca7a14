"""From a central epsilon to a mechanism by the numerical bounds: our own curves in Figures 9.3 and 9.4."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import SOLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.unary import SUE
from hubbub.planning.shuffled import MOST_BUCKET_BITS
from hubbub.privacy.amplify import local_epsilon
from hubbub.privacy.fakes import mean_variance
from hubbub_papers.baselines.shuffled.comparators import ByOracle, HistogramMethod, HistogramSetting


def numerical_sh(setting: HistogramSetting) -> HistogramMethod:
    """GRR with the largest local epsilon that a valid bound allows."""
    return ByOracle(_largest(lambda local: GRR(epsilon=local, domain=setting.domain), setting))


def numerical_rap(setting: HistogramSetting) -> HistogramMethod:
    """Symmetric unary encoding with the largest local epsilon that a valid bound allows.

    Example:
        >>> numerical_rap(HistogramSetting(0.5, 1e-6, n=10_000, domain=10)).oracle.epsilon > 4
        True
    """
    return ByOracle(_largest(lambda local: SUE(epsilon=local, domain=setting.domain), setting))


def numerical_solh(setting: HistogramSetting) -> HistogramMethod:
    """The same of SOLH, with the number of buckets that gives the smallest variance.

    Example:
        >>> numerical_solh(HistogramSetting(0.5, 1e-6, n=100, domain=1000)).oracle.epsilon >= 0.5
        True
    """

    def with_bits(bits: int, quick: bool) -> FrequencyOracle:
        return _largest(lambda local: SOLH(epsilon=local, domain=setting.domain, buckets=1 << bits), setting, quick)

    best = min(range(1, MOST_BUCKET_BITS + 1), key=lambda bits: mean_variance(with_bits(bits, True), setting.n))
    return ByOracle(with_bits(best, False))


def _largest(
    make: Callable[[float], FrequencyOracle], setting: HistogramSetting, quick: bool = False
) -> FrequencyOracle:
    oracle = local_epsilon(make, epsilon=setting.epsilon, n=setting.n, delta=setting.delta, quick=quick)
    assert isinstance(oracle, FrequencyOracle)
    return oracle


NUMERICAL: dict[str, Callable[[HistogramSetting], HistogramMethod]] = {
    "SH": cache(numerical_sh),
    "RAP": cache(numerical_rap),
    "SOLH": cache(numerical_solh),
}
"""The methods of the chapter that are mechanisms, by numerical bounds; each setting is searched once."""
