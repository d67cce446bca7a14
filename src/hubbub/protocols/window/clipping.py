"""Large numeric domains: find privately where to clip, and go on looking while the means stream."""

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
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.release import Release
from hubbub.protocols.statistic import Frequencies, Means
from hubbub.protocols.view import Binned
from hubbub.protocols.window.control import TINY
from hubbub.protocols.window.division import BudgetDivision, Division

Floats = NDArray[np.float64]
WINDOWS = 4
"""For how many windows the search remembers what it heard, about."""
SURE = 3.0
"""Standard errors below which a share may be none."""
BETTER = 0.8
"""A new threshold takes over when its expected error is below so much of the present one's."""


@dataclass
class _Seen:
    """The histogram as far as it is known, and the threshold in use."""

    shares: Floats
    variance: Floats
    weight: float
    threshold: float

    def learn(self, heard: Estimate, forget: float) -> None:
        """Weigh in one more estimate."""
        before = forget * self.weight
        self.weight = before + heard.n
        self.shares = (before * self.shares + heard.n * heard.value) / self.weight
        self.variance = (before**2 * self.variance + heard.n**2 * heard.variance) / self.weight**2

    def sure(self) -> Floats:
        """The shares up to the last cell from which on there is surely someone: noise far out would count for much."""
        beyond, variance = (np.cumsum(part[::-1])[::-1] for part in (self.shares, self.variance))
        above = np.flatnonzero(beyond > SURE * np.sqrt(variance))
        end = above[-1] + 1 if len(above) else 0
        return np.where(np.arange(len(self.shares)) < end, np.maximum(self.shares, 0.0), 0.0)

    def unseen(self, above: Floats) -> float:
        """The square of what clipping loses, as far as the histogram can tell, and how uncertain that is."""
        return max(float(self.shares @ above), 0.0) ** 2 + float(self.variance @ above**2)


class Clippings(NamedTuple):
    """All that `clipped_means` may ever ask: what a device that admits it has to know beforehand.

    `views` are patterns, in which a number may be a range; `mechanisms` are those of the search, by their ids; of
    `means`, whose parameters depend on the threshold, the name and the units that one may spend.
    """

    views: tuple[dict[str, Json], ...]
    mechanisms: tuple[str, ...]
    means: tuple[str, tuple[int, ...]]
    rounds: int


def clippings(
    method: str, *, epsilon: float, w: int, most: float, first: float = 1.0, cells: int = 32, search: float = 0.2
) -> Clippings:
    """The family of asks of `clipped_means` with the same parameters.

    Example:
        >>> family = clippings("LPU", epsilon=1.0, w=4, most=1000.0)
        >>> family.views[1], family.means, family.rounds
        ({'kind': 'clipped', 'low': 0.0, 'high': {'from': 1.0, 'to': 1000.0}}, ('Hybrid', (1000000000000,)), 2)
    """
    from hubbub.protocols.window import METHODS

    where, division = _parts(method, epsilon=epsilon, w=w, most=most, first=first, cells=cells, search=search)
    if isinstance(division, BudgetDivision):
        aside, spent = division.each_aside, METHODS[method].decision.parts(division)
    else:
        aside, spent = division.units, (division.units,)
    name = type(division.question.mechanism(division.units)).__name__
    clipped: dict[str, Json] = {"kind": "clipped", "low": 0.0, "high": {"from": float(first), "to": float(most)}}
    return Clippings(
        (where.view.spec(), clipped),
        (where.mechanism(aside).spec_id,) if aside else (),
        (name, tuple(sorted({units_of(epsilon_of(units)) for units in spent if units}))),
        1 + METHODS[method].decision.rounds,
    )


def _parts(
    method: str, *, epsilon: float, w: int, most: float, first: float, cells: int, search: float
) -> tuple[Frequencies, Division]:
    """What the search asks, and the account of the window."""
    from hubbub.protocols.window import METHODS

    if method not in METHODS:
        raise InvalidValue("method", method, f"one of {', '.join(METHODS)}")
    if not (math.isfinite(most) and 0 < first < most):
        raise InvalidValue("most", most, f"a finite number above first = {first:g}")
    if not 0 < search < 1:
        raise InvalidValue("search", search, "a share between 0 and 1")
    view = Binned(first=first, factor=(most / first) ** (1 / (cells - 1)), cells=cells)
    division = METHODS[method].division(Means(0.0, most), epsilon=epsilon, w=w, aside=search)
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

    Of every window, `search` asks for the cell of the number among cells that grow geometrically from `first` to
    `most`. From the histogram comes the threshold of least expected error: what clipping would lose, squared, and the
    variance of the method's own division at that threshold. The rest of the window is the method's.

    Parameters
    ----------
    method
        A name of `hubbub.protocols.window.METHODS`.
    epsilon, w
        The promise: epsilon in any w consecutive steps, the search included.
    most, first, cells
        The largest number there may be, the smallest border, and how many cells there are between.
    search
        The share of the window that the search takes.
    memory, options
        As of `hubbub.protocols.window.window_stream`.

    Example:
        >>> stream = clipped_means("LPU", epsilon=1.0, w=4, most=1000.0)
        >>> type(next(stream).view).__name__
        'Binned'
    """
    from hubbub.protocols.window import METHODS

    where, account = _parts(method, epsilon=epsilon, w=w, most=most, first=first, cells=cells, search=search)
    assert isinstance(where.view, Binned)
    edges = np.array([0.0, *where.view.borders, most])
    memory = memory or Memory()
    memory.keep("division", account)
    seen = memory.keep("seen", _Seen(np.zeros(cells), np.zeros(cells), 0.0, most))
    stream = METHODS[method].decide(account, memory=memory, **options)
    reply: Any = None
    while True:
        heard = yield from account.ask_aside(where)
        if heard is not None:
            seen.learn(heard, 1 - 1 / (WINDOWS * w))
            seen.threshold = best_threshold(seen.sure(), edges, account, now=seen.threshold)
        account.question = Means(0.0, seen.threshold)
        message = stream.send(reply)
        while not isinstance(message, Release):
            message = stream.send((yield message))
        reply = yield _widened(message, seen.unseen(_above(edges, seen.threshold)))


def _widened(release: Release, more: float) -> Release:
    """The same release, its variance with what clipping may have taken away: a clipped mean is not the mean."""
    wider = {
        name: replace(estimate, variance=estimate.variance + more, bias="heuristic")
        for name, estimate in release.estimates.items()
    }
    return replace(release, estimates=wider)


def best_threshold(shares: Floats, edges: Floats, division: Division, *, now: float) -> float:
    """The upper border with the least variance plus squared clipping bias; the present one if none is much better.

    Example:
        >>> from hubbub.protocols.window import PopulationDivision
        >>> division = PopulationDivision(Means(0.0, 100.0), epsilon=1.0, w=4)
        >>> division.population = 4000.0
        >>> best_threshold(np.array([0.9, 0.1, 0.0]), np.array([0.0, 1.0, 10.0, 100.0]), division, now=100.0)
        10.0
    """
    usual, part = division.question, division.total // division.w
    losses = {}
    for threshold in map(float, edges[1:]):
        division.question = Means(0.0, threshold)
        losses[threshold] = division.error(part, np.array([threshold / 2])) + _lost(shares, edges, threshold) ** 2
    division.question = usual
    best = min(losses, key=losses.__getitem__)
    return best if losses[best] < BETTER * losses[now] else now


def _lost(shares: Floats, edges: Floats, threshold: float) -> float:
    """What clipping takes from the mean, if the shares, made whole, lie in the middles of their cells."""
    return float(shares @ _above(edges, threshold)) / max(float(shares.sum()), TINY)


def _above(edges: Floats, threshold: float) -> Floats:
    """How far the middle of each cell is above the threshold."""
    return np.asarray(np.maximum((edges[:-1] + edges[1:]) / 2 - threshold, 0.0))
