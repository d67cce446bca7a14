"""A table's conversation: in every step each device reports on one level of its dimensions, and reports are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask
from hubbub.protocols.cohort import CIRCLE, Arc
from hubbub.protocols.driver import Protocol, ask_all
from hubbub.protocols.memory import Memory
from hubbub.protocols.release import MAIN, Release
from hubbub.protocols.view import View

ARITHMETIC = 1
"""Goes up with every change of what is asked or released: a collector then begins a new era."""
STEP = "step"
"""The public column of the step that a report is of."""


@dataclass(frozen=True)
class LevelPart:
    """What one part of the devices is asked: a view of a level's cells, and the mechanism that reports them."""

    view: View
    mechanism: ReportFormat


@dataclass(frozen=True)
class ColumnShares:
    """Which part tells the shares of one column's values, all of which it counts: its number, and a name for each."""

    name: str
    part: int
    labels: tuple[str, ...]


@dataclass
class _Place:
    step: int = 1


def table_stream(
    parts: Sequence[LevelPart], columns: Sequence[ColumnShares], *, memory: Memory | None = None
) -> Protocol:
    """Standing asks, one a level, of equal parts of the devices; a release a step has the shares of each column.

    The reports are kept: what else is asked of the table is asked of them.

    Parameters
    ----------
    parts
        The levels.
    columns
        What a release tells; the first is the main estimate.
    memory
        Where to remember the step.

    Example:
        >>> from hubbub import GRR
        >>> from hubbub.protocols.view import Whole
        >>> part = LevelPart(Whole(), GRR(epsilon=1.0, domain=2))
        >>> asks = next(table_stream([part, part], [ColumnShares("os", 0, ("a", "b"))]))
        >>> [(ask.cohort.share, ask.kept) for ask in asks]
        [(0.5, True), (0.5, True)]
    """
    place = (memory or Memory()).keep("place", _Place())
    borders = [CIRCLE * part // len(parts) for part in range(len(parts) + 1)]
    arcs = [Arc(low, high - low) for low, high in pairwise(borders)]
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
            heard = sketch.people > 0
            estimates[column.name] = _shares(mechanism, sketch, column, people) if heard else _unknown(column)
        main = columns[0].name
        named = {MAIN: estimates.pop(main), **estimates}
        place.step += 1
        yield Release(step=step, estimates=named, published=people > 0, spent=1.0, n=float(people))


def _shares(mechanism: ReportFormat, sketch: Sketch, column: ColumnShares, people: int) -> Estimate:
    told = replace(mechanism.estimate(sketch), labels=column.labels)
    return told.of_population(max(people, told.n))


def _unknown(column: ColumnShares) -> Estimate:
    size = len(column.labels)
    return Estimate(np.zeros(size), np.full(size, np.inf), 0, bias="heuristic", labels=column.labels)
