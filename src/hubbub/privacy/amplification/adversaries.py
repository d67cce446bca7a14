"""The guarantees against each of the adversaries of section 9.4, who work together against one person."""

from __future__ import annotations

import math
from typing import NamedTuple

from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.privacy.amplification.amplify import Amplified, amplify

_SPACE = 1 << 64


class Adversaries(NamedTuple):
    """The guarantee of one report against each of the three adversaries of section 9.4.

    Parameters
    ----------
    server
        The server by itself, which sees the shuffled batch.
    server_and_people
        The server and everybody else who reports: the report is hidden among the fakes only.
    server_and_shufflers
        The server and enough shufflers to know the order: only the local epsilon remains.
    """

    server: Amplified
    server_and_people: Amplified
    server_and_shufflers: Amplified

    def to_dict(self) -> dict[str, Json]:
        """The three guarantees as JSON."""
        return {name: guarantee.to_dict() for name, guarantee in self._asdict().items()}

    def sentences(self) -> list[str]:
        """The same in words, each with who must work together."""
        return [
            f"Against the server alone: {_words(self.server)}.",
            f"Against the server together with all other people who report: {_words(self.server_and_people)}.",
            "Against the server together with half of the shufflers or more (with onions: with all of them): "
            f"{_words(self.server_and_shufflers)}, which is what the device itself spends.",
        ]


def adversaries(mechanism: Mechanism, *, n: int, delta: float, fakes: int = 0) -> Adversaries:
    """The guarantees of one report among n and so many fakes that shufflers draw together as shares.

    Corollaries 9.5.2 and 9.5.3, by the numerical bounds instead of their formulas. Fakes of GRR are numbers below 2^64
    taken modulo the domain, which is not quite uniform: that is added to delta.
    """
    return Adversaries(
        _with_shared_fakes(mechanism, n, delta, fakes),
        _with_shared_fakes(mechanism, 1, delta, fakes),
        Amplified(mechanism.effective_epsilon, 0.0, "local"),
    )


def modulo_bias(mechanism: Mechanism, fakes: int) -> float:
    """How far so many fakes, drawn as numbers below 2^64, are from uniform ones, in total variation."""
    return fakes * (_SPACE % mechanism.size) / _SPACE if isinstance(mechanism, GRR) else 0.0


def _with_shared_fakes(mechanism: Mechanism, n: int, delta: float, fakes: int) -> Amplified:
    off = modulo_bias(mechanism, fakes)
    if not off:
        return amplify(mechanism, n=n, delta=delta, fakes=fakes)
    # (epsilon, delta) with uniform fakes is (epsilon, delta + (1 + e^epsilon) off) with these.
    half = amplify(mechanism, n=n, delta=delta / 2, fakes=fakes)
    spent = (1 + math.exp(half.epsilon)) * off
    if spent > delta / 2:
        return Amplified(mechanism.effective_epsilon, 0.0, "local")
    exact = amplify(mechanism, n=n, delta=delta - spent, fakes=fakes)
    return exact if exact.delta == 0 else Amplified(exact.epsilon, delta, exact.method, exact.valid)


def _words(guarantee: Amplified) -> str:
    but = f", but for a delta of {guarantee.delta:g}" if guarantee.delta else ""
    return f"epsilon {guarantee.epsilon:.4g}{but}"
