"""LBU and LPU: every step takes the same part of the window."""

from __future__ import annotations

from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.last_publication import LastPublication


def uniform_parts(division: Division) -> tuple[int, ...]:
    """The parts that an ask takes."""
    return (division.total // division.w,)


def uniform(division: Division, *, filtered: bool = True, memory: Memory | None = None) -> Protocol:
    """Publish at every step, with a w-th of the window (LDP-IDS, sections 4.1 and 5.1).

    Unless `filtered`, a step releases its own estimate, as printed.
    """
    last = (memory or Memory()).keep("last", LastPublication(division, filtered=filtered))
    (part,) = uniform_parts(division)
    while True:
        fresh = yield from division.ask(part, standing=True, then=part)
        yield last.release(fresh)
