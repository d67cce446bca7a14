"""LSP: one step in w takes the whole window."""

from __future__ import annotations

from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.last_publication import LastPublication


def sampling_parts(division: Division) -> tuple[int, ...]:
    """The parts that an ask takes: the whole window.

    Example:
        >>> from hubbub.protocols.window import BudgetDivision, Frequencies
        >>> sampling_parts(BudgetDivision(Frequencies(2), epsilon=1.0, w=20))
        (1000000000000,)
    """
    return (division.total,)


def sampling(division: Division, *, memory: Memory | None = None) -> Protocol:
    """Publish at the steps 1, w+1, 2w+1, ... with the whole window; repeat the last release in between (section 4.1)."""
    last = (memory or Memory()).keep("last", LastPublication(division))
    while True:
        due = (division.step - 1) % division.w == 0
        fresh = (yield from division.ask(division.total)) if due else None
        yield last.release(fresh)
