"""Means of numbers from a large range, clipped at a threshold that is searched for privately all the time."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.noise import normal_reach
from hubbub.core.reports import Floats
from hubbub.core.spec import Json
from hubbub.protocols.driver import OWN, Protocol, Release
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Frequencies, Means
from hubbub.protocols.topl.stream import ABOVE, LOST
from hubbub.protocols.views.basic import Binned
from hubbub.protocols.window.division import BudgetDivision, Division
from hubbub.protocols.window.filters import TINY, weighted_mean

ARITHMETIC = 1
"""The version of what is asked, released or remembered next to the method's: a new era begins where it rises."""
WHOLE = "Mean without clipping"
"""The name of the estimate of a step's mean as if nothing had been clipped."""

WINDOWS = 4
"""For about how many windows a report of the search counts."""
SURE = 3.0
"""A share counts as positive if it is more than this many standard errors above 0."""
NOTICED = 0.5
"""A threshold is considered only if so large a share of people above it would be significant."""
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

    def beyond(self) -> tuple[Floats, Floats]:
        """The sum of the shares from each cell on, and its standard error."""
        shares, variance = (np.cumsum(part[::-1])[::-1] for part in (self.shares, self.variance))
        return shares, np.sqrt(variance)

    def lowest(self) -> int:
        """The number of the first threshold at which it would show if half of the people were above."""
        error = np.append(self.beyond()[1][1:], 0.0)
        return int(np.argmax(SURE * error <= NOTICED))

    def significant(self) -> Floats:
        """The shares up to the last cell such that the sum from there on is significant, and 0 beyond.

        Noise in the cells of large numbers would otherwise count for much.
        """
        beyond, error = self.beyond()
        above = np.flatnonzero(beyond > SURE * error)
        end = above[-1] + 1 if len(above) else 0
        return np.where(np.arange(len(self.shares)) < end, np.maximum(self.shares, 0.0), 0.0)

    def squared_bias(self, above: Floats) -> float:
        """The squared bias of clipping, as far as the shares tell it; `above` is how far each cell is above the clip.

        What they cannot tell is not in it: the noise of the largest cells would make every interval as wide as without
        clipping. A release has it in estimates of its own.
        """
        return float(self.significant() @ above) ** 2


@dataclass
class _Recent:
    """What the search found in the last steps: in the present block of w steps, and in the block before it."""

    w: int
    older: Estimate | None = None
    newer: Estimate | None = None
    steps: int = 0

    def add(self, estimate: Estimate | None) -> None:
        """Add the shares of the cells in one more step; None where nobody answered."""
        if self.steps and self.steps % self.w == 0:
            self.older, self.newer = self.newer, None
        self.newer = _mean_of(self.newer, estimate)
        self.steps += 1

    @property
    def shares(self) -> Estimate | None:
        """The mean shares of all reports of both blocks."""
        return _mean_of(self.older, self.newer)

    @property
    def length(self) -> int:
        """How many steps both blocks have: from w + 1 to 2w, once there were as many."""
        return self.steps if self.steps <= self.w else self.w + (self.steps - 1) % self.w + 1


def _mean_of(*estimates: Estimate | None) -> Estimate | None:
    """The mean of estimates of the same shares, each weighted by how many reports it rests on."""
    known = [estimate for estimate in estimates if estimate is not None]
    if len(known) < 2:
        return known[0] if known else None
    total = sum(estimate.n for estimate in known)
    return weighted_mean(known, [estimate.n / total for estimate in known])


class ClippedAsks(NamedTuple):
    """All asks that `clipped_means` can make, which a device must know beforehand to admit them.

    `views` are specs of views, in which a number may be a range. `mechanisms` are the ids of the search's mechanisms.
    `means` is the name of the mechanism of the means, whose parameters depend on the threshold, and the units that it
    may spend. `rounds` is the most asks in a step, `report_bytes` the size of the largest report.
    """

    views: tuple[dict[str, Json], ...]
    mechanisms: tuple[str, ...]
    means: tuple[str, tuple[int, ...]]
    rounds: int
    report_bytes: int


def clipped_asks(
    method: str,
    *,
    epsilon: float,
    w: int,
    bound: float,
    first: float = 1.0,
    cells: int = 32,
    search: float = 0.2,
    **options: Any,
) -> ClippedAsks:
    """All asks of `clipped_means` with the same parameters."""
    from hubbub.protocols.window import METHODS, asked_parts

    cell_shares, division = _parts(method, epsilon=epsilon, w=w, bound=bound, first=first, cells=cells, search=search)
    if isinstance(division, BudgetDivision):
        search_units, mean_units = division.aside_parts, asked_parts(METHODS[method], division, options)
    else:
        search_units, mean_units = division.units, (division.units,)
    means = division.question.mechanism(division.units)
    searches = [cell_shares.mechanism(search_units)] if search_units else []
    clipped: dict[str, Json] = {"kind": "clipped", "low": 0.0, "high": {"from": float(first), "to": float(bound)}}
    return ClippedAsks(
        (cell_shares.view.spec(), clipped),
        tuple(mechanism.spec_id for mechanism in searches),
        (type(means).__name__, tuple(sorted({units_of(epsilon_of(units)) for units in mean_units if units}))),
        1 + METHODS[method].decision.rounds,
        max(mechanism.report_bytes for mechanism in (means, *searches)),
    )


def _parts(
    method: str, *, epsilon: float, w: int, bound: float, first: float, cells: int, search: float, groups: int = 1
) -> tuple[Frequencies, Division]:
    """The statistic of the search, and the division of the window."""
    from hubbub.protocols.window import find_method

    chosen = find_method(method)
    if not (math.isfinite(bound) and 0 < first < bound):
        raise InvalidValue("bound", bound, f"a finite number above first = {first:g}")
    if not 0 < search < 1:
        raise InvalidValue("search", search, "a share between 0 and 1")
    view = Binned(first=first, factor=(bound / first) ** (1 / (cells - 1)), cells=cells)
    division = chosen.division(Means(0.0, bound), epsilon=epsilon, w=w, aside=search, groups=groups)
    return Frequencies(cells, view=view), division


def clipped_means(
    method: str,
    *,
    epsilon: float,
    w: int,
    bound: float,
    first: float = 1.0,
    cells: int = 32,
    search: float = 0.2,
    groups: int = 1,
    memory: Memory | None = None,
    **options: Any,
) -> Protocol:
    """Means of numbers from 0 to `bound`, clipped at a threshold that is searched for all the time (section 6.1.2).

    A part `search` of every window asks for the cell of the number, among cells that grow geometrically from `first` to
    `bound`. From this histogram follows the threshold of least expected error: the squared bias of clipping, plus the
    variance of the method at that threshold. The rest of the window is for the method.

    The mean is that of the clipped numbers; its interval allows for the bias that the histogram tells, which follows a
    jump only after some windows. So a release also has the share of the people above the threshold, how much
    of the mean their numbers lose, each for this step and for the last w + 1 to 2w steps together, and the step's mean
    without clipping. These rest on the reports of those steps alone: their intervals hold whatever the stream does.

    Parameters
    ----------
    method
        A name of `hubbub.protocols.window.METHODS`.
    epsilon, w
        The promise: epsilon in any w consecutive steps, the search included.
    bound, first, cells
        The largest number, the smallest border of a cell, and the number of cells.
    search
        The share of the window that the search takes.
    groups
        How many equal groups devices are in, of which one, always the same, is asked: estimates are of all devices.
    memory, options
        As of `hubbub.protocols.window.window_stream`.
    """
    from hubbub.protocols.window import METHODS, check_options

    keys: dict[str, Any] = {"epsilon": epsilon, "w": w, "bound": bound, "first": first, "cells": cells}
    cell_shares, division = _parts(method, **keys, search=search, groups=groups)
    check_options(method, METHODS[method].options, w, options)
    assert isinstance(cell_shares.view, Binned)
    edges = np.array([0.0, *cell_shares.view.borders, bound])
    memory = memory or Memory()
    memory.keep("division", division)
    histogram = memory.keep("seen", _Histogram(np.zeros(cells), np.zeros(cells), 0.0, bound))
    recent = memory.keep("recent", _Recent(w))
    stream = METHODS[method].decide(division, memory=memory, **options)
    reply: Any = None
    while True:
        estimate = yield from division.ask_aside(cell_shares)
        recent.add(estimate)
        if estimate is not None:
            histogram.add(estimate, 1 - 1 / (WINDOWS * w))
            present, lowest = histogram.threshold, histogram.lowest()
            histogram.threshold = best_threshold(histogram.significant(), edges, division, now=present, lowest=lowest)
        division.question = Means(0.0, histogram.threshold)
        message = stream.send(reply)
        while not isinstance(message, Release):
            message = stream.send((yield message))
        release = _widened(message, histogram.squared_bias(_above(edges, histogram.threshold)))
        people = division.population
        now, combined = (e if e is None else e.of_groups(groups, people) for e in (estimate, recent.shares))
        away = _clipped_away(now, combined, recent.length, edges, histogram.threshold)
        if now is not None and OWN in message.estimates:
            rate = (1 - 1 / groups) / people
            away[WHOLE] = _lost(now, edges, histogram.threshold, message.estimates[OWN], rate)
        reply = yield replace(release, estimates={**release.estimates, **away})


def _widened(release: Release, squared_bias: float) -> Release:
    """The same release with the squared bias of clipping added to its variances."""
    wider = {
        name: replace(estimate, variance=estimate.variance + squared_bias, bias="heuristic")
        for name, estimate in release.estimates.items()
    }
    return replace(release, estimates=wider)


def _clipped_away(
    shares: Estimate | None,
    combined: Estimate | None,
    length: int,
    edges: Floats,
    threshold: float,
) -> dict[str, Estimate]:
    """What lies above the threshold, in this step and in the last `length` steps, of which the shares of the cells are
    given."""
    if combined is None:
        return {}
    times = [f"above {threshold:.4g}, {time}" for time in ("this step", f"the last {length} steps")]
    above = (edges[:-1] >= threshold).astype(float)
    lost = None if shares is None else _lost(shares, edges, threshold)
    return {
        ABOVE: _both(None if shares is None else shares.linear(above), combined.linear(above), times),
        LOST: _both(lost, _lost(combined, edges, threshold), times),
    }


def _lost(
    shares: Estimate, edges: Floats, threshold: float, mean: Estimate | None = None, rate: float = 0.0
) -> Estimate:
    """How much of the mean clipping loses, if numbers are in the middles of their cells; plus a clipped mean, if given.

    The interval holds wherever in their cells the numbers are: it begins where that of the cells' lower ends begins,
    and ends where that of their upper ends does. Loss and mean of one sample of the people, whose means vary `rate`
    times as much as single numbers, are high together: a number above the threshold t is clipped to t, so that the
    covariance of its loss and the clipped number is E[loss] (t - E[clipped]).
    """
    places = (edges[:-1], (edges[:-1] + edges[1:]) / 2, edges[1:])
    sums = shares.linear([np.maximum(place - threshold, 0.0) for place in places])
    value, variance = sums.value, sums.variance
    if mean is not None:
        together = np.maximum(value, 0.0) * np.maximum(threshold - mean.value, 0.0)
        value, variance = value + mean.value, variance + mean.variance + 2 * rate * together
    reach, errors = normal_reach(0.95), np.sqrt(variance)
    low, high = value[0] - reach * errors[0], value[2] + reach * errors[2]
    return Estimate(
        value[1],
        (max(high - low, 0.0) / 2 / reach) ** 2,
        shares.n if mean is None else shares.n + mean.n,
        "heuristic",
        "quantity",
        bounds=(0.0, float(edges[-1]) - (threshold if mean is None else 0.0)),
        centre=(low + high) / 2,
    )


def _both(now: Estimate | None, recent: Estimate, labels: list[str]) -> Estimate:
    """This step's estimate, which is unknown where nobody answered, and that of the last steps, as one."""
    if now is None:
        now = replace(recent, variance=np.full(1, np.inf))
    fewest = min(now.n, recent.n)  # a release of few reports is withheld
    middles = [part.value if part.centre is None else part.centre for part in (now, recent)]
    return replace(
        recent,
        n=fewest,
        value=np.concatenate([now.value, recent.value]),
        variance=np.concatenate([now.variance, recent.variance]),
        centre=np.concatenate(middles),
        bias="heuristic",
        labels=tuple(labels),
    )


def best_threshold(shares: Floats, edges: Floats, division: Division, *, now: float, lowest: int = 0) -> float:
    """The threshold with the least variance plus squared bias of clipping; the present one if none is much better.

    Thresholds are the upper ends of the cells, from cell `lowest` on.
    """
    question, part = division.question, division.total // division.w
    errors = {}
    for threshold in map(float, edges[1 + lowest :]):
        division.question = Means(0.0, threshold)
        errors[threshold] = division.error(part, np.array([threshold / 2])) + _bias(shares, edges, threshold) ** 2
    division.question = question
    best = min(errors, key=errors.__getitem__)
    return best if now not in errors or errors[best] < BETTER * errors[now] else now


def _bias(shares: Floats, edges: Floats, threshold: float) -> float:
    """By how much clipping lowers the mean, if numbers are in the middles of their cells and shares are scaled to 1."""
    return float(shares @ _above(edges, threshold)) / max(float(shares.sum()), TINY)


def _above(edges: Floats, threshold: float) -> Floats:
    """How far the middle of each cell is above the threshold."""
    return np.asarray(np.maximum((edges[:-1] + edges[1:]) / 2 - threshold, 0.0))
