"""The protocols that chapter 3 compares: the variance on paper, and the mechanism that is deployed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import BLH, OLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.she import SHE
from hubbub.mechanisms.frequency.unary import OUE, SUE, THE, Unary, pass_rates


def pure_variance(p: float, q: float) -> float:
    """Var[c(i)]/n of a pure protocol, at share 0 (Eq 3.3)."""
    return q * (1 - q) / (p - q) ** 2


@dataclass(frozen=True)
class Oracle:
    """A protocol on paper and deployed.

    Parameters
    ----------
    name
        As the dissertation has it.
    closed
        Var[c(i)]/n at share 0 for an epsilon and a domain size, with real-valued parameters as the paper computes it.
    deploy
        The mechanism for an epsilon and a domain size; its parameters are integers.
    """

    name: str
    closed: Callable[[float, int], float]
    deploy: Callable[[float, int], FrequencyOracle]


def _direct(epsilon: float, domain: int) -> float:
    total = math.exp(epsilon) + domain - 1  # Eq 3.4
    return pure_variance(math.exp(epsilon) / total, 1 / total)


def _symmetric(epsilon: float, domain: int) -> float:
    q = 1 / (math.exp(epsilon / 2) + 1)
    return pure_variance(1 - q, q)


def _hashing(epsilon: float, buckets: float) -> float:
    power = math.exp(epsilon)
    return pure_variance(power / (power + buckets - 1), 1 / buckets)


_ALL = (
    Oracle("DE", _direct, lambda epsilon, domain: GRR(epsilon=epsilon, domain=domain)),
    Oracle("SHE", lambda epsilon, _: 8 / epsilon**2, lambda epsilon, domain: SHE(epsilon=epsilon, domain=domain)),
    Oracle(
        "THE",
        lambda epsilon, _: pure_variance(*pass_rates(epsilon, 1.0)),
        lambda epsilon, domain: THE(epsilon=epsilon, domain=domain, theta=1.0),
    ),
    Oracle("SUE", _symmetric, lambda epsilon, domain: SUE(epsilon=epsilon, domain=domain)),
    Oracle(
        "OUE",
        lambda epsilon, _: pure_variance(0.5, 1 / (math.exp(epsilon) + 1)),
        lambda epsilon, domain: OUE(epsilon=epsilon, domain=domain),
    ),
    Oracle("BLH", lambda epsilon, _: _hashing(epsilon, 2), lambda epsilon, domain: BLH(epsilon=epsilon, domain=domain)),
    Oracle(
        "OLH",
        lambda epsilon, _: _hashing(epsilon, math.exp(epsilon) + 1),
        lambda epsilon, domain: OLH(epsilon=epsilon, domain=domain),
    ),
)

ORACLES: dict[str, Oracle] = {oracle.name: oracle for oracle in _ALL}
"""The seven protocols of Table 3.1, by name; THE at theta = 1, as in the dissertation's tables and figures."""


def describe(mechanism: FrequencyOracle) -> str:
    """The integers that a deployed mechanism chose, in a few words."""
    if isinstance(mechanism, BLH | OLH):
        return f"g = {mechanism.buckets}"
    if isinstance(mechanism, SHE):
        return f"noise on a grid of 1/{mechanism.grid}, clamped at {mechanism.clamp} cells"
    if isinstance(mechanism, Unary):
        return f"{mechanism.width}-bit probabilities"
    return "64-bit probabilities"
