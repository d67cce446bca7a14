"""Steady questions: everyone is asked the same at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.protocols.ask import MAIN, Ask, Release
from hubbub.protocols.driver import Protocol, ask_once
from hubbub.protocols.memory import Memory
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
    nothing = np.zeros(question.size), np.full(question.size, np.inf)
    unknown = Estimate(*nothing, 0, bias="heuristic", kind=question.kind)
    place = (memory or Memory()).keep("place", _Place())
    while True:
        step = place.step
        sketch = yield from ask_once(Ask(mechanism=mechanism, step=step, view=question.view, standing=True))
        heard = sketch.people > 0
        estimates = question.answers(mechanism, sketch, candidates) if heard else {MAIN: unknown}
        place.step += 1
        yield Release(step=step, estimates=estimates, published=heard, spent=1.0, n=float(sketch.people))
