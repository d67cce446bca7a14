"""From a central epsilon to a mechanism by the formulas of chapter 9; the numerical bounds are better."""

from __future__ import annotations

import math

from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.unary import SUE

_MOST_LOCAL = 40.0


def room(epsilon: float, n: int, delta: float) -> float:
    """M = epsilon^2 (n - 1) / (14 ln(2/delta)), which e^local + d - 1 may be (Theorem 9.3.2)."""
    return epsilon**2 * (n - 1) / (14 * math.log(2 / delta))


def printed_sh(epsilon: float, n: int, delta: float, domain: int) -> GRR:
    """SH: GRR with e^local = M - d + 1; if shuffling does not amplify, GRR with the central epsilon itself."""
    return GRR(epsilon=_amplified(room(epsilon, n, delta) - domain + 1, 1.0, epsilon), domain=domain)


def printed_solh(epsilon: float, n: int, delta: float, domain: int) -> OLH:
    """SOLH: (M + 2)/3 buckets, rounded, and e^local = M - d' + 1 (Eq 9.4)."""
    most = room(epsilon, n, delta)
    buckets = max(2, round((most + 2) / 3))
    return OLH(epsilon=_amplified(most - buckets + 1, 1.0, epsilon), domain=domain, buckets=buckets)


def printed_rap(epsilon: float, n: int, delta: float, domain: int) -> SUE:
    """RAP: symmetric unary encoding with e^(local/2) + 1 = epsilon^2 (n - 1) / (56 ln(4/delta)) (Theorem 9.3.1).

    That holds where the server sees sums of bits alone, and not for shuffled reports (`unary_claim`).
    """
    power = epsilon**2 * (n - 1) / (56 * math.log(4 / delta)) - 1
    return SUE(epsilon=_amplified(power, 2.0, epsilon), domain=domain)


def printed_rap_r(epsilon: float, n: int, delta: float, domain: int) -> SUE:
    """RAP_R: RAP under removal of a person instead of replacement, which is RAP with twice the central epsilon."""
    return printed_rap(2 * epsilon, n, delta, domain)


def _amplified(power: float, times: float, central: float) -> float:
    """times ln(power), at least the central epsilon, which is reached without a shuffle."""
    return min(max(central, times * math.log(power) if power > 1 else 0.0), _MOST_LOCAL)
