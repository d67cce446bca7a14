"""w-event streams: any w consecutive steps spend at most epsilon (LDP-IDS)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hubbub.core.errors import InvalidValue
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.absorption import absorption
from hubbub.protocols.window.distribution import distribution
from hubbub.protocols.window.division import BudgetDivision, Division, PopulationDivision
from hubbub.protocols.window.dsat import dsat
from hubbub.protocols.window.pegasus import pegasus
from hubbub.protocols.window.question import Frequencies, Means, Question
from hubbub.protocols.window.rescue import fast, rescue
from hubbub.protocols.window.sampling import sampling
from hubbub.protocols.window.uniform import uniform

__all__ = [
    "METHODS",
    "BudgetDivision",
    "Division",
    "Frequencies",
    "Means",
    "Method",
    "PopulationDivision",
    "Question",
    "window_stream",
]


class Method(NamedTuple):
    """A method of the paper: how it decides, what it divides, and the version of its arithmetic.

    The number goes up with every change of what it asks, releases or remembers: a collector then begins a new era
    instead of going on from numbers that it would not have made.
    """

    decide: Callable[..., Protocol]
    division: type[Division]
    arithmetic: int = 1


METHODS: dict[str, Method] = {
    "LBU": Method(uniform, BudgetDivision),
    "LSP": Method(sampling, PopulationDivision),
    "LBD": Method(distribution, BudgetDivision),
    "LBA": Method(absorption, BudgetDivision),
    "LPU": Method(uniform, PopulationDivision),
    "LPD": Method(distribution, PopulationDivision),
    "LPA": Method(absorption, PopulationDivision),
    "LB-DSAT": Method(dsat, BudgetDivision),
    "LP-DSAT": Method(dsat, PopulationDivision),
    "LB-RescueDP": Method(rescue, BudgetDivision),
    "LP-RescueDP": Method(rescue, PopulationDivision),
    "LB-FAST": Method(fast, BudgetDivision),
    "LP-FAST": Method(fast, PopulationDivision),
    "LB-PeGaSus": Method(pegasus, BudgetDivision),
    "LP-PeGaSus": Method(pegasus, PopulationDivision),
}


def window_stream(
    method: str, question: Question, *, epsilon: float, w: int, memory: Memory | None = None, **options: Any
) -> Protocol:
    """A protocol that releases an estimate a step, for ever, and spends at most epsilon in any w steps on any device.

    Parameters
    ----------
    method
        A name of `METHODS`.
    question
        `Frequencies(domain)` or `Means(low, high)`.
    epsilon, w
        The promise: epsilon in any w consecutive steps.
    memory
        Where to remember what steps leave to later ones: a stream can stop and go on.
    options
        The method's own, such as `beta`.

    Example:
        >>> stream = window_stream("LPA", Frequencies(2), epsilon=1.0, w=20)
        >>> round(next(stream).cohort.share, 6)
        0.025
    """
    if method not in METHODS:
        raise InvalidValue("method", method, f"one of {', '.join(METHODS)}")
    chosen, memory = METHODS[method], memory or Memory()
    account = memory.keep("division", chosen.division(question, epsilon=epsilon, w=w))
    return chosen.decide(account, memory=memory, **options)
