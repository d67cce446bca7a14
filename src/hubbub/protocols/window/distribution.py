"""LBD and LPD: each publication takes half of what the window has left."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.finite import finite_parts
from hubbub.protocols.window.last import Last, dissimilarity


@dataclass
class _Taken:
    """By publications, in the w-1 steps before this one."""

    parts: deque[int]


def distribution_parts(division: Division, *, beta: float = 0.5) -> tuple[int, ...]:
    """What its asks can take, where everyone answers them.

    Example:
        >>> from hubbub.protocols.window import BudgetDivision, Frequencies
        >>> len(distribution_parts(BudgetDivision(Frequencies(2), epsilon=1.0, w=20)))
        114
    """
    measure = division.portion(beta) // division.w
    publish = division.total - measure * division.w
    return (measure, *(parts for parts in finite_parts(publish) if parts <= publish // 2))


def distribution(
    division: Division, *, beta: float = 0.5, filtered: bool = True, memory: Memory | None = None
) -> Protocol:
    """Publish where the stream has moved further than a publication would err (Algorithm 2).

    `beta` of the window measures the distance from the last release, evenly over its steps; the rest publishes.
    Unless `filtered`, a step that does not publish releases the last publication again, as printed.

    Example:
        >>> from hubbub.protocols.window import Frequencies, PopulationDivision
        >>> next(distribution(PopulationDivision(Frequencies(2), epsilon=1.0, w=4))).cohort.share
        0.125
    """
    w, memory = division.w, memory or Memory()
    last = memory.keep("last", Last(division, filtered=filtered))
    taken = memory.keep("taken", _Taken(deque([0] * (w - 1), maxlen=w - 1))).parts
    measure = division.portion(beta) // w
    publish = division.total - measure * w
    while True:
        # M1: how far has the stream moved?
        now = yield from division.ask(measure, standing=True)
        # M2: publish or approximate
        parts = division.round_parts((publish - sum(taken)) // 2, publish)
        moved = now is not None and dissimilarity(now, last.value) > division.error(parts, now.value)
        fresh = (yield from division.ask(parts, then=measure)) if moved else None
        taken.append(parts if moved else 0)  # spent, whether or not anyone answered
        yield last.release(fresh, now)
