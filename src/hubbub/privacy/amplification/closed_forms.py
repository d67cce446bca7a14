"""Closed formulas of amplification: looser than the numerical bounds, and easy to check by hand."""

from __future__ import annotations

import math


def efmrtt19(epsilon: float, n: int, delta: float) -> float | None:
    """12 epsilon sqrt(ln(1/delta)/n), for epsilon below 1/2, n of at least 1,000 and delta below 1/100.

    References
    ----------
    Erlingsson et al., "Amplification by shuffling: from local to central differential privacy via anonymity", 2019.
    """
    if not (epsilon < 0.5 and n >= 1000 and delta < 0.01):
        return None
    return 12 * epsilon * math.sqrt(math.log(1 / delta) / n)


def fmt21(epsilon: float, n: int, delta: float) -> float | None:
    """ln(1 + (E-1)/(E+1) (8 sqrt(E ln(4/delta)/n) + 8 E/n)), E = e^epsilon, while E is at most n/(16 ln(2/delta)).

    References
    ----------
    Feldman, McMillan and Talwar, "Hiding among the clones", 2021 (Theorem 3.1).
    """
    power = math.exp(epsilon)
    if power > n / (16 * math.log(2 / delta)):
        return None
    inner = 8 * math.sqrt(power * math.log(4 / delta) / n) + 8 * power / n
    return math.log1p((power - 1) / (power + 1) * inner)


def binomial_epsilon(weight: float, n: int, delta: float) -> float | None:
    """sqrt(14 ln(2/delta) weight/(n-1)), where each other report hits a given output with chance 1/weight.

    It is a bound while it is at most 1, and not below 27 weight/(n-1).

    References
    ----------
    Balle et al., 2019 (Theorem 3.1); dissertation, Theorems 9.2.1 and 9.3.2.
    """
    if n < 2:
        return None
    epsilon = max(math.sqrt(14 * math.log(2 / delta) * weight / (n - 1)), 27 * weight / (n - 1))
    return epsilon if epsilon <= 1 else None
