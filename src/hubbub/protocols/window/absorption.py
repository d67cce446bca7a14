"""LBA and LPA: a publication takes what the steps before it left, and what those after it will do without."""

from __future__ import annotations

from hubbub.protocols.driver import Protocol
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.last import Last, dissimilarity

__all__ = ["absorption"]


def absorption(division: Division, *, beta: float = 0.5) -> Protocol:
    """Publish where the stream has moved further than a publication would err, with all that was saved (Algorithm 3).

    `beta` of the window measures the distance from the last release, evenly over its steps; every step is given a w-th
    of the rest, which a later publication absorbs if it is not used. A publication that took k of these nullifies the
    next k-1 steps.
    """
    w, last = division.w, Last(division)
    measure = division.portion(beta) // w
    unit = (division.total - measure * w) // w
    nullified = 0  # steps after the last publication that paid for it
    while True:
        # M1: how far has the stream moved?
        now = yield from division.ask(measure, standing=True)
        # M2: publish or approximate
        absorbed = division.step - (last.step + nullified)
        fresh = None
        if absorbed > 0 and now is not None:
            parts = unit * min(absorbed, w)
            if dissimilarity(now, last.value) > division.error(parts, now.value):
                fresh = yield from division.ask(parts)
        if fresh is None:
            yield division.release(last.stand_in(division.step), published=False)
        else:
            nullified = min(absorbed, w) - 1
            yield division.release(last.publish(fresh, division.step), published=True)
