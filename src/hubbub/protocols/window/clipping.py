"""Means of numbers from a large range, clipped at a threshold that is searched for privately all the time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.spec import Json
from hubbub.protocols.driver import Protocol, Release
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Frequencies, Means
from hubbub.protocols.views.basic import Binned
from hubbub.protocols.window.division import BudgetDivision, Division
from hubbub.protocols.window.filters import TINY

Floats = NDArray[np.float64]
WINDOWS = 4
"""For about how many windows a report of the search counts."""
SURE = 3.0
"""A share counts as positive if it is more than this many standard errors above 0."""
BETTER = 0.8
"""A new threshold is used if its expected error is below this part of the present threshold's."""


@dataclass
class _Histogram:
    """The estimated shares of the cells, and the threshold in use."""

    shares: Floats
    variance: Floats
    weight: float
    threshold: float

    def add(self, estimate: Estimate, decay: float) -> None:
        """Average in one more estimate; the weight of the earlier ones is multiplied by `decay`."""
        before = decay * self.weight
        self.weight = before + estimate.n
        self.shares = (before * self.shares + estimate.n * estimate.value) / self.weight
        self.variance = (before**2 * self.variance + estimate.n**2 * estimate.variance) / self.weight**2

    def significant(self) -> Floats:
        """The shares up to the last cell such that the sum from there on is significant, and 0 beyond.

        Noise in the cells of large numbers would otherwise count for much.
        """
        beyond, variance = (np.cumsum(part[::-1])[::-1] for part in (self.shares, self.variance))
        above = np.flatnonzero(beyond > SURE * np.sqrt(variance))
        end = above[-1] + 1 if len(above) else 0
        return np.where(np.arange(len(self.shares)) < end, np.maximum(self.shares, 0.0), 0.0)

    def squared_bias(self, above: Floats) -> float:
        """The squared bias of clipping plus its uncertainty; `above` is how far each cell is above the threshold."""
        return max(float(self.shares @ above), 0.0) ** 2 + float(self.variance @ above**2)


class ClippedAsks(NamedTuple):
    """All asks that `clipped_means` can make, which a device must know beforehand to admit them.

    `views` are specs of views, in which a number may be a range. `mechanisms` are the ids of the search's mechanisms.
    `means` is the name of the mechanism of the means, whose parameters depend on the threshold, and the units that it
    may spend. `rounds` is the most asks in a step.
    """

    views: tuple[dict[str, Json], ...]
    mechanisms: tuple[str, ...]
    means: tuple[str, tuple[int, ...]]
    rounds: int


def clipped_asks(
    method: str, *, epsilon: float, w: int, most: float, first: float = 1.0, cells: int = 32, search: float = 0.2
) -> ClippedAsks:
    """All asks of `clipped_means` with the same parameters."""
    from hubbub.protocols.window import METHODS

    cell_shares, division = _parts(method, epsilon=epsilon, w=w, most=most, first=first, cells=cells, search=search)
    if isinstance(division, BudgetDivision):
        search_units, mean_units = division.aside_parts, METHODS[method].decision.parts(division)
    else:
        search_units, mean_units = division.units, (division.units,)
    name = type(division.question.mechanism(division.units)).__name__
    clipped: dict[str, Json] = {"kind": "clipped", "low": 0.0, "high": {"from": float(first), "to": float(most)}}
    return ClippedAsks(
        (cell_shares.view.spec(), clipped),
        (cell_shares.mechanism(search_units).spec_id,) if search_units else (),
        (name, tuple(sorted({units_of(epsilon_of(units)) for units in mean_units if units}))),
        1 + METHODS[method].decision.rounds,
    )


def _parts(
    method: str, *, epsilon: float, w: int, most: float, first: float, cells: int, search: float
) -> tuple[Frequencies, Division]:
    """The statistic of the search, and the division of the window."""
    from hubbub.protocols.window import find_method

    chosen = find_method(method)
    if not (math.isfinite(most) and 0 < first < most):
        raise InvalidValue("most", most, f"a finite number above first = {first:g}")
    if not 0 < search < 1:
        raise InvalidValue("search", search, "a share between 0 and 1")
    view = Binned(first=first, factor=(most / first) ** (1 / (cells - 1)), cells=cells)
    division = chosen.division(Means(0.0, most), epsilon=epsilon, w=w, aside=search)
    return Frequencies(cells, view=view), division


def clipped_means(
    method: str,
    *,
    epsilon: float,
    w: int,
    most: float,
    first: float = 1.0,
    cells: int = 32,
    search: float = 0.2,
    memory: Memory | None = None,
    **options: Any,
) -> Protocol:
    """Means of numbers from 0 to `most`, clipped at a threshold that is searched for all the time (section 6.1.2).

    A part `search` of every window asks for the cell of the number, among cells that grow geometrically from `first` to
    `most`. From this histogram follows the threshold of least expected error: the squared bias of clipping, plus the
    variance of the method at that threshold. The rest of the window is for the method.

    Parameters
    ----------
    method
        A name of `hubbub.protocols.window.METHODS`.
    epsilon, w
        The promise: epsilon in any w consecutive steps, the search included.
    most, first, cells
        The largest number, the smallest border of a cell, and the number of cells.
    search
        The share of the window that the search takes.
    memory, options
        As of `hubbub.protocols.window.window_stream`.
    """
    from hubbub.protocols.window import METHODS

    cell_shares, division = _parts(method, epsilon=epsilon, w=w, most=most, first=first, cells=cells, search=search)
    assert isinstance(cell_shares.view, Binned)
    edges = np.array([0.0, *cell_shares.view.borders, most])
    memory = memory or Memory()
    memory.keep("division", division)
    histogram = memory.keep("seen", _Histogram(np.zeros(cells), np.zeros(cells), 0.0, most))
    stream = METHODS[method].decide(division, memory=memory, **options)
    reply: Any = None
    while True:
        estimate = yield from division.ask_aside(cell_shares)
        if estimate is not None:
            histogram.add(estimate, 1 - 1 / (WINDOWS * w))
            present = histogram.threshold
            histogram.threshold = best_threshold(histogram.significant(), edges, division, now=present)
        division.question = Means(0.0, histogram.threshold)
        message = stream.send(reply)
        while not isinstance(message, Release):
            message = stream.send((yield message))
        reply = yield _widened(message, histogram.squared_bias(_above(edges, histogram.threshold)))


def _widened(release: Release, squared_bias: float) -> Release:
    """The same release with the squared bias of clipping added to its variances."""
    wider = {
        name: replace(estimate, variance=estimate.variance + squared_bias, bias="heuristic")
        for name, estimate in release.estimates.items()
    }
    return replace(release, estimates=wider)


def best_threshold(shares: Floats, edges: Floats, division: Division, *, now: float) -> float:
    """The threshold with the least variance plus squared bias of clipping; the present one if none is much better."""
    question, part = division.question, division.total // division.w
    errors = {}
    for threshold in map(float, edges[1:]):
        division.question = Means(0.0, threshold)
        errors[threshold] = division.error(part, np.array([threshold / 2])) + _bias(shares, edges, threshold) ** 2
    division.question = question
    best = min(errors, key=errors.__getitem__)
    return best if errors[best] < BETTER * errors[now] else now


def _bias(shares: Floats, edges: Floats, threshold: float) -> float:
    """By how much clipping lowers the mean, if numbers are in the middles of their cells and shares are scaled to 1."""
    return float(shares @ _above(edges, threshold)) / max(float(shares.sum()), TINY)


def _above(edges: Floats, threshold: float) -> Floats:
    """How far the middle of each cell is above the threshold."""
    return np.asarray(np.maximum((edges[:-1] + edges[1:]) / 2 - threshold, 0.0))
