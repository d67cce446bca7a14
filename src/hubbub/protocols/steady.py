"""Steady streams: every device is asked the same at every step; of a table, its cell at one level."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.reports import Floats, Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.bundle import Bundle
from hubbub.protocols.ask import Arc, Ask, equal_arcs
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
    question: Statistic,
    *,
    epsilon: float,
    candidates: Sequence[str] | None = None,
    groups: int = 1,
    memory: Memory | None = None,
) -> Protocol:
    """Ask every device the same at every step, and release an estimate from the reports of that step alone.

    Every step spends epsilon again; a device's ledger limits what it spends over time. A step without reports releases
    an unknown estimate, with infinite variance.

    `candidates`: for open domains, the values whose shares are estimated. `groups`: how many equal groups devices are
    in, of which one is asked: estimates are of all, and their variances include that of the sample.
    """
    mechanism = question.mechanism(units_of(epsilon))
    place = (memory or Memory()).keep("place", _Place())
    while True:
        step = place.step
        sketch = yield from ask_once(Ask(mechanism=mechanism, step=step, view=question.view, standing=True))
        answered = sketch.people > 0
        unknown = {MAIN: _unknown(question)}
        estimates = question.answers(mechanism, sketch, candidates, groups) if answered else unknown
        place.step += 1
        people = float(sketch.people * groups)
        yield Release(step=step, estimates=estimates, published=answered, spent=1.0, n=people)


def steady_parts(
    parts: Sequence[Statistic], *, epsilon: float, groups: int = 1, memory: Memory | None = None
) -> Protocol:
    """As `steady`, with several statistics: each is asked of an equal part of the devices, the same part at every step.

    The main estimate is that of the first statistic.

    `groups`: as of `steady`.
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
                estimates.update(part.answers(mechanism, sketch, groups=groups))
        place.step += 1
        people = sum(sketch.people for sketch in sketches) * groups
        yield Release(step=step, estimates=estimates, published=people > 0, spent=1.0, n=float(people))


def _unknown(question: Statistic) -> Estimate:
    return replace(_unknown_shares(question.size), kind=question.kind)


def _unknown_shares(size: int, labels: tuple[str, ...] | None = None) -> Estimate:
    return Estimate(np.zeros(size), np.full(size, np.inf), 0, bias="heuristic", labels=labels)


STEP = "step"
"""The name of the public column that holds the step of a report."""


@dataclass(frozen=True)
class LevelPart:
    """What one part of the devices is asked: the view that gives a level's cell, or the cells of several levels, the
    mechanism that reports them, and which part of the devices it is."""

    view: View
    mechanism: ReportFormat
    arc: Arc


@dataclass(frozen=True, eq=False)
class ColumnShares:
    """A column whose shares are released.

    Parameters
    ----------
    part
        The number of the part of the devices whose reports tell of it.
    place
        Of a bundle of reports, the one that counts the column's values.
    sums
        The shares as sums of the shares that are counted, a row each; None where they are counted themselves.
    """

    name: str
    part: int
    labels: tuple[str, ...]
    place: int = 0
    sums: Floats | None = None

    def read(self, mechanism: ReportFormat, sketch: Sketch) -> Estimate:
        """The shares, from the sketch of the part."""
        if isinstance(mechanism, Bundle):
            estimate = mechanism.estimate_of(sketch, self.place)
        else:
            estimate = mechanism.estimate(sketch)
        estimate = estimate if self.sums is None else estimate.linear(self.sums)
        return replace(estimate, labels=self.labels)


def table_stream(
    parts: Sequence[LevelPart], columns: Sequence[ColumnShares], *, memory: Memory | None = None
) -> Protocol:
    """Ask parts of the devices about one level each, or several, at every step, and release the shares of each column.

    The reports are kept: SQL queries of the table are answered from them.

    `columns`: the columns whose shares are released; the first is the main estimate.
    """
    place = (memory or Memory()).keep("place", _Place())
    while True:
        step = place.step
        asks = [
            Ask(mechanism=part.mechanism, step=step, view=part.view, cohort=part.arc, standing=True, kept=True)
            for part in parts
        ]
        sketches = yield from ask_all(asks)
        people = sum(sketch.people for sketch in sketches)
        estimates: dict[str, Estimate] = {}
        for column in columns:
            sketch, mechanism = sketches[column.part], parts[column.part].mechanism
            estimate = _unknown_shares(len(column.labels), column.labels)
            if sketch.people > 0:
                estimate = column.read(mechanism, sketch)
                estimate = estimate.of_population(max(people, estimate.n))
            estimates[column.name] = estimate
        estimates = {MAIN: estimates.pop(columns[0].name), **estimates}
        place.step += 1
        yield Release(step=step, estimates=estimates, published=people > 0, spent=1.0, n=float(people))
