"""Steady questions: everyone is asked the same at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import CIRCLE, Arc
from hubbub.protocols.driver import Protocol, ask_all, ask_once
from hubbub.protocols.memory import Memory
from hubbub.protocols.release import MAIN, Release
from hubbub.protocols.statistic import Statistic

ARITHMETIC = 1
"""Goes up with every change of what is asked or released: a collector then begins a new era."""


@dataclass
class _Place:
    step: int = 1


def steady(
    question: Statistic, *, epsilon: float, candidates: Sequence[str] | None = None, memory: Memory | None = None
) -> Protocol:
    """One standing ask of everyone, and a release a step from that step's reports alone.

    Every step spends epsilon again: what a device spends over time is what its ledger allows. A step in which nobody
    answered is released as unknown, with infinite variance.

    Parameters
    ----------
    question
        What is asked.
    epsilon
        What one report may spend.
    candidates
        For open domains, the values whose shares are estimated.
    memory
        Where to remember the step.

    Example:
        >>> from hubbub import Random
        >>> from hubbub.protocols.driver import converse
        >>> from hubbub.protocols.window import Frequencies
        >>> def answer(ask):
        ...     return ask.mechanism.accumulate(ask.mechanism.randomize([0] * 500 + [1] * 500, Random(seed=ask.step)))
        >>> stream = steady(Frequencies(2), epsilon=4.0)
        >>> [round(float(release.estimate.value[1]), 1) for release in converse(stream, answer, steps=3)]
        [0.5, 0.5, 0.5]
    """
    mechanism = question.mechanism(units_of(epsilon))
    place = (memory or Memory()).keep("place", _Place())
    while True:
        step = place.step
        sketch = yield from ask_once(Ask(mechanism=mechanism, step=step, view=question.view, standing=True))
        heard = sketch.people > 0
        estimates = question.answers(mechanism, sketch, candidates) if heard else {MAIN: _unknown(question)}
        place.step += 1
        yield Release(step=step, estimates=estimates, published=heard, spent=1.0, n=float(sketch.people))


def steady_parts(parts: Sequence[Statistic], *, epsilon: float, memory: Memory | None = None) -> Protocol:
    """The same with several statistics, each asked of a part of the devices, always of the same ones.

    The main estimate is the first statistic's.

    Parameters
    ----------
    parts
        What the parts are asked; all parts are of one size.
    epsilon
        What one report may spend.
    memory
        Where to remember the step.

    Example:
        >>> from hubbub.protocols.window import Frequencies
        >>> asks = next(steady_parts([Frequencies(2), Frequencies(9)], epsilon=1.0))
        >>> [(ask.mechanism.size, ask.cohort.share) for ask in asks]
        [(2, 0.5), (9, 0.5)]
    """
    mechanisms = [part.mechanism(units_of(epsilon)) for part in parts]
    place = (memory or Memory()).keep("place", _Place())
    borders = [CIRCLE * part // len(parts) for part in range(len(parts) + 1)]
    arcs = [Arc(low, high - low) for low, high in pairwise(borders)]
    while True:
        step = place.step
        asks = [
            Ask(mechanism=mechanism, step=step, view=part.view, cohort=arc, standing=True)
            for part, mechanism, arc in zip(parts, mechanisms, arcs, strict=True)
        ]
        sketches = yield from ask_all(asks)
        heard = [sketch.people > 0 for sketch in sketches]
        estimates: dict[str, Estimate] = {} if heard[0] else {MAIN: _unknown(parts[0])}
        for part, mechanism, sketch in zip(parts, mechanisms, sketches, strict=True):
            if sketch.people > 0:
                estimates.update(part.answers(mechanism, sketch))
        place.step += 1
        n = float(sum(sketch.people for sketch in sketches))
        yield Release(step=step, estimates=estimates, published=any(heard), spent=1.0, n=n)


def _unknown(question: Statistic) -> Estimate:
    nothing = np.zeros(question.size), np.full(question.size, np.inf)
    return Estimate(*nothing, 0, bias="heuristic", kind=question.kind)
