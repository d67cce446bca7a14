"""The protocol of a table: at every step each device reports its cell at one level, and the reports are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import equal_arcs
from hubbub.protocols.driver import Protocol, ask_all
from hubbub.protocols.memory import Memory
from hubbub.protocols.release import MAIN, Release
from hubbub.protocols.view import View

ARITHMETIC = 1
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


@dataclass
class _Place:
    step: int = 1


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
            estimates[column.name] = _shares(mechanism, sketch, column, people) if answered else _unknown(column)
        estimates = {MAIN: estimates.pop(columns[0].name), **estimates}
        place.step += 1
        yield Release(step=step, estimates=estimates, published=people > 0, spent=1.0, n=float(people))


def _shares(mechanism: ReportFormat, sketch: Sketch, column: ColumnShares, people: int) -> Estimate:
    estimate = replace(mechanism.estimate(sketch), labels=column.labels)
    return estimate.of_population(max(people, estimate.n))


def _unknown(column: ColumnShares) -> Estimate:
    size = len(column.labels)
    return Estimate(np.zeros(size), np.full(size, np.inf), 0, bias="heuristic", labels=column.labels)
