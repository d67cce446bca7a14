"""LBA and LPA: a publication absorbs the unused parts of earlier steps, and later steps are skipped to pay for it."""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.finite import finite_counts
from hubbub.protocols.window.last_publication import LastPublication, dissimilarity


@dataclass
class _Absorbed:
    """The step of the last publication, and how many steps after it publish nothing to pay for it."""

    asked: int = 0
    nullified: int = 0


def absorption_parts(division: Division, *, beta: float = 0.5) -> tuple[int, ...]:
    """The numbers of parts that an ask can take, if everyone answers."""
    measure = division.portion(beta) // division.w
    unit = (division.total - measure * division.w) // division.w
    return (measure, *(unit * count for count in finite_counts(division.w)))


def absorption(
    division: Division, *, beta: float = 0.5, filtered: bool = True, memory: Memory | None = None
) -> Protocol:
    """Publish if the stream has moved further than the error of a publication, with all that was saved (Algorithm 3).

    `beta` of the window measures the distance from the last release, evenly over the steps. Every step is given a w-th
    of the rest, which a later publication absorbs if it is not used. After a publication that took k of these w-ths,
    the next k-1 steps publish nothing. Unless `filtered`, a step without a publication releases the last one again, as
    printed.
    """
    w, memory = division.w, memory or Memory()
    last = memory.keep("last", LastPublication(division, filtered=filtered))
    paid = memory.keep("paid", _Absorbed())
    measure = division.portion(beta) // w
    unit = (division.total - measure * w) // w
    while True:
        # M1: how far has the stream moved?
        measured = yield from division.ask(measure, standing=True)
        # M2: publish or approximate
        absorbed = division.round_count(max(0, min(division.step - (paid.asked + paid.nullified), w)))
        fresh = None
        if absorbed > 0 and measured is not None:
            parts = unit * absorbed
            if dissimilarity(measured, last.value) > division.error(parts, measured.value):
                paid.asked, paid.nullified = division.step, absorbed - 1
                fresh = yield from division.ask(parts, then=measure)
        yield last.release(fresh, measured)
