"""LBD and LPD: each publication takes half of what the window has left."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.finite import finite_parts
from hubbub.protocols.window.last_publication import LastPublication, dissimilarity


@dataclass
class _Taken:
    """The parts that publications took in each of the w-1 steps before this one."""

    parts: deque[int]


def distribution_parts(division: Division, *, beta: float = 0.5) -> tuple[int, ...]:
    """The numbers of parts that an ask can take, if everyone answers."""
    measure = division.portion(beta) // division.w
    publish = division.total - measure * division.w
    return (measure, *(parts for parts in finite_parts(publish) if parts <= publish // 2))


def distribution(
    division: Division, *, beta: float = 0.5, filtered: bool = True, memory: Memory | None = None
) -> Protocol:
    """Publish if the stream has moved further than the error of a publication (Algorithm 2).

    `beta` of the window measures the distance from the last release, evenly over the steps; the rest is for
    publications. Unless `filtered`, a step without a publication releases the last one again, as printed.
    """
    w, memory = division.w, memory or Memory()
    last = memory.keep("last", LastPublication(division, filtered=filtered))
    taken = memory.keep("taken", _Taken(deque([0] * (w - 1), maxlen=w - 1))).parts
    measure = division.portion(beta) // w
    publish = division.total - measure * w
    while True:
        # M1: how far has the stream moved?
        measured = yield from division.ask(measure, standing=True)
        # M2: publish or approximate
        parts = division.round_parts((publish - sum(taken)) // 2, publish)
        moved = measured is not None and dissimilarity(measured, last.value) > division.error(parts, measured.value)
        fresh = (yield from division.ask(parts, then=measure)) if moved else None
        taken.append(parts if moved else 0)  # spent, whether or not anyone answered
        yield last.release(fresh, measured)
