"""Steady streams: every device is asked the same at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import equal_arcs
from hubbub.protocols.driver import Protocol, ask_all, ask_once
from hubbub.protocols.memory import Memory
from hubbub.protocols.release import MAIN, Release
from hubbub.protocols.statistic import Statistic

ARITHMETIC = 1
"""The version of the protocol: it rises with every change of what is asked or released, and a new era begins."""


@dataclass
class _Place:
    step: int = 1


def steady(
    question: Statistic, *, epsilon: float, candidates: Sequence[str] | None = None, memory: Memory | None = None
) -> Protocol:
    """Ask every device the same at every step, and release an estimate from the reports of that step alone.

    Every step spends epsilon again; a device's ledger limits what it spends over time. A step without reports releases
    an unknown estimate, with infinite variance.

    Parameters
    ----------
    question
        The statistic that is estimated.
    epsilon
        What one report may spend.
    candidates
        For open domains, the values whose shares are estimated.
    memory
        Where the step is kept.
    """
    mechanism = question.mechanism(units_of(epsilon))
    place = (memory or Memory()).keep("place", _Place())
    while True:
        step = place.step
        sketch = yield from ask_once(Ask(mechanism=mechanism, step=step, view=question.view, standing=True))
        answered = sketch.people > 0
        estimates = question.answers(mechanism, sketch, candidates) if answered else {MAIN: _unknown(question)}
        place.step += 1
        yield Release(step=step, estimates=estimates, published=answered, spent=1.0, n=float(sketch.people))


def steady_parts(parts: Sequence[Statistic], *, epsilon: float, memory: Memory | None = None) -> Protocol:
    """As `steady`, with several statistics: each is asked of an equal part of the devices, the same part at every step.

    The main estimate is that of the first statistic.

    Parameters
    ----------
    parts
        The statistic that each part is asked.
    epsilon
        What one report may spend.
    memory
        Where the step is kept.
    """
    mechanisms = [part.mechanism(units_of(epsilon)) for part in parts]
    place = (memory or Memory()).keep("place", _Place())
    arcs = equal_arcs(len(parts))
    while True:
        step = place.step
        asks = [
            Ask(mechanism=mechanism, step=step, view=part.view, cohort=arc, standing=True)
            for part, mechanism, arc in zip(parts, mechanisms, arcs, strict=True)
        ]
        sketches = yield from ask_all(asks)
        estimates: dict[str, Estimate] = {} if sketches[0].people > 0 else {MAIN: _unknown(parts[0])}
        for part, mechanism, sketch in zip(parts, mechanisms, sketches, strict=True):
            if sketch.people > 0:
                estimates.update(part.answers(mechanism, sketch))
        place.step += 1
        people = sum(sketch.people for sketch in sketches)
        yield Release(step=step, estimates=estimates, published=people > 0, spent=1.0, n=float(people))


def _unknown(question: Statistic) -> Estimate:
    size = question.size
    return Estimate(np.zeros(size), np.full(size, np.inf), 0, bias="heuristic", kind=question.kind)
