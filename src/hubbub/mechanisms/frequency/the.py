"""Thresholding with histogram encoding: a report says which noisy counts passed a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.frequency.unary import Unary

__all__ = ["THE", "best_theta"]


@dataclass(frozen=True, kw_only=True)
class THE(Unary):
    """Shares of a domain of moderate size, by Laplace noise on a histogram, cut at a threshold.

    A count passes theta with probability p = 1 - e^(eps (theta-1)/2)/2 where the value is held and
    q = e^(-eps theta/2)/2 where it is not. The device applies the threshold. So its report is a unary encoding with
    these rates, and spends less than the noisy histogram would: `effective_epsilon` says how much.

    Parameters
    ----------
    epsilon
        What the noisy histogram may spend.
    domain
        A size, a list of names, or a Domain.
    theta
        The threshold, between 0 and 1; 0 chooses the one of smallest variance.
    width, one, zero
        Bits of the probabilities, and the probabilities; 0 chooses them.

    Example:
        >>> the = THE(epsilon=1.0, domain=4)
        >>> round(the.theta, 4), round(the.variance(1), 3), round(the.effective_epsilon, 3)
        (0.6186, 4.807, 0.896)

    References
    ----------
    Dissertation, section 3.3.2.
    """

    theta: float = 0.0

    def _resolve(self) -> None:
        if self.theta == 0:
            self._set("theta", best_theta(self.epsilon))
        if isinstance(self.theta, bool) or not isinstance(self.theta, int | float) or not 0 < self.theta <= 1:
            raise InvalidValue("theta", self.theta, "a number above 0, at most 1")
        self._set("theta", float(self.theta))
        super()._resolve()

    def _thresholds(self, width: int) -> tuple[int, int]:
        p, q = pass_rates(self.epsilon, self.theta)
        return round(p * (1 << width)), math.ceil(q * (1 << width))


def pass_rates(epsilon: float, theta: float) -> tuple[float, float]:
    """The chance that a noisy 1, and a noisy 0, passes theta."""
    return 1 - math.exp(epsilon * (theta - 1) / 2) / 2, math.exp(-epsilon * theta / 2) / 2


def best_theta(epsilon: float) -> float:
    """The threshold of smallest variance at share 0 (golden-section search of Eq 3.3 on 1/2 to 1)."""

    def variance(theta: float) -> float:
        p, q = pass_rates(epsilon, theta)
        return q * (1 - q) / (p - q) ** 2

    low, high, golden = 0.5, 1.0, (math.sqrt(5) - 1) / 2
    while high - low > 1e-12:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if variance(left) < variance(right) else (left, high)
    return round((low + high) / 2, 9)
