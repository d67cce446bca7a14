"""The methods of LDP-IDS: LBU and LPU, LSP, LBD and LPD, LBA and LPA."""

from collections import deque
from dataclasses import dataclass

from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.division import Division, finite_counts, finite_parts
from hubbub.protocols.window.filters import LastPublication, dissimilarity


def uniform_parts(division: Division) -> tuple[int, ...]:
    """The parts that an ask takes."""
    return (division.total // division.w,)


def uniform(division: Division, *, filtered: bool = True, memory: Memory | None = None) -> Protocol:
    """Publish at every step, with a w-th of the window (Ren et al., 2022, sections 4.1 and 5.1).

    Unless `filtered`, a step releases its own estimate, as printed.
    """
    last = (memory or Memory()).keep("last", LastPublication(division, filtered=filtered))
    (part,) = uniform_parts(division)
    while True:
        fresh = yield from division.ask(part, standing=True, then=part)
        yield last.release(fresh)


def sampling_parts(division: Division) -> tuple[int, ...]:
    """The parts that an ask takes: the whole window.

    Example:
        >>> from hubbub.protocols.window import BudgetDivision, Frequencies
        >>> sampling_parts(BudgetDivision(Frequencies(2), epsilon=1.0, w=20))
        (1000000000000,)
    """
    return (division.total,)


def sampling(division: Division, *, memory: Memory | None = None) -> Protocol:
    """Publish at steps 1, w+1, 2w+1, ... with the whole window; repeat the release in between (section 4.1)."""
    last = (memory or Memory()).keep("last", LastPublication(division))
    while True:
        due = (division.step - 1) % division.w == 0
        fresh = (yield from division.ask(division.total)) if due else None
        yield last.release(fresh)


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
    division: Division, *, beta: float = 0.5, filtered: bool = True, u_min: int = 1, memory: Memory | None = None
) -> Protocol:
    """Publish if the stream has moved further than the error of a publication (Algorithm 2).

    `beta` of the window measures the distance from the last release, evenly over the steps; the rest is for
    publications, which at least `u_min` people must be expected to answer. Unless `filtered`, a step without a
    publication releases the last one again, as printed.
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
        enough = division.people(parts) >= u_min
        moved = measured is not None and dissimilarity(measured, last.value) > division.error(parts, measured.value)
        moved = moved and enough
        fresh = (yield from division.ask(parts, then=measure)) if moved else None
        taken.append(parts if moved else 0)  # spent, whether or not anyone answered
        yield last.release(fresh, measured)


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
