"""Steady streams: every device is asked the same at every step; of a table, its cell at one level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.reports import Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask, equal_arcs
from hubbub.protocols.driver import MAIN, Protocol, Release, ask_all, ask_once
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.views.basic import View

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


"""The version of the protocol: it rises with every change of what is asked or released, and a new era begins."""
STEP = "step"
"""The name of the public column that holds the step of a report."""


@dataclass(frozen=True)
class LevelPart:
    """What one part of the devices is asked: the view that gives a level's cell, and the mechanism that reports it."""

    view: View
    mechanism: ReportFormat


@dataclass(frozen=True)
class ColumnShares:
    """A column whose shares are released: the number of the part that counts all its values, and a label for each."""

    name: str
    part: int
    labels: tuple[str, ...]


def table_stream(
    parts: Sequence[LevelPart], columns: Sequence[ColumnShares], *, memory: Memory | None = None
) -> Protocol:
    """Ask equal parts of the devices about one level each, at every step, and release the shares of each column.

    The reports are kept: SQL queries of the table are answered from them.

    Parameters
    ----------
    parts
        What each part is asked, one part for each level.
    columns
        The columns whose shares are released; the first is the main estimate.
    memory
        Where the step is kept.
    """
    place = (memory or Memory()).keep("place", _Place())
    arcs = equal_arcs(len(parts))
    while True:
        step = place.step
        asks = [
            Ask(mechanism=part.mechanism, step=step, view=part.view, cohort=arc, standing=True, kept=True)
            for part, arc in zip(parts, arcs, strict=True)
        ]
        sketches = yield from ask_all(asks)
        people = sum(sketch.people for sketch in sketches)
        estimates: dict[str, Estimate] = {}
        for column in columns:
            sketch, mechanism = sketches[column.part], parts[column.part].mechanism
            answered = sketch.people > 0
            estimates[column.name] = _shares(mechanism, sketch, column, people) if answered else _unknown_column(column)
        estimates = {MAIN: estimates.pop(columns[0].name), **estimates}
        place.step += 1
        yield Release(step=step, estimates=estimates, published=people > 0, spent=1.0, n=float(people))


def _shares(mechanism: ReportFormat, sketch: Sketch, column: ColumnShares, people: int) -> Estimate:
    estimate = replace(mechanism.estimate(sketch), labels=column.labels)
    return estimate.of_population(max(people, estimate.n))


def _unknown_column(column: ColumnShares) -> Estimate:
    size = len(column.labels)
    return Estimate(np.zeros(size), np.full(size, np.inf), 0, bias="heuristic", labels=column.labels)
