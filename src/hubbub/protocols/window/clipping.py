"""Large numeric domains: find privately where to clip, then stream means of the clipped numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.protocols.ask import Release
from hubbub.protocols.driver import Protocol
from hubbub.protocols.view import Binned
from hubbub.protocols.window.question import Frequencies, Means

__all__ = ["best_threshold", "clipped_means"]

Floats = NDArray[np.float64]
SURE = 3.0
"""Standard errors below which a cell counts as empty."""


def clipped_means(
    method: str, *, epsilon: float, w: int, most: float, first: float = 1.0, cells: int = 32, **options: object
) -> Protocol:
    """Means of numbers from 0 to `most`, clipped at a threshold found from the first w steps (LDP-IDS, section 6.1.2).

    For w steps everyone is asked once, for the cell of the number among cells that grow geometrically from `first` to
    `most`; the histogram gives the threshold of least expected error, and meanwhile the releases. Nobody can be asked
    again before the search has left the window, so its last mean stands in for w - 1 steps; then `method` takes over.

    Parameters
    ----------
    method
        A name of `hubbub.protocols.window.METHODS`.
    epsilon, w
        The promise: epsilon in any w consecutive steps.
    most, first, cells
        The largest number there may be, the smallest border, and how many cells there are between.

    Example:
        >>> stream = clipped_means("LPU", epsilon=1.0, w=4, most=1000.0)
        >>> type(next(stream).view).__name__
        'Binned'
    """
    from hubbub.protocols.window import METHODS, PopulationDivision

    if method not in METHODS:
        raise InvalidValue("method", method, f"one of {', '.join(METHODS)}")
    if not (math.isfinite(most) and 0 < first < most):
        raise InvalidValue("most", most, f"a finite number above first = {first:g}")
    view = Binned(first=first, factor=(most / first) ** (1 / (cells - 1)), cells=cells)
    search = PopulationDivision(Frequencies(cells, view=view), epsilon=epsilon, w=w)
    edges = np.array([0.0, *view.borders, most])
    middles = (edges[:-1] + edges[1:]) / 2
    parts: list[Estimate] = []
    latest = Estimate(np.zeros(1), np.array([np.inf]), 0, bias="heuristic", kind="quantity")
    for _ in range(w):
        heard = yield from search.ask(search.total // w)
        if heard is not None:
            parts.append(heard)
            mean = heard.linear(middles)
            latest = Estimate(mean.value, mean.variance, mean.n, bias="heuristic", kind="quantity")
        yield search.release(latest, published=heard is not None)
    if not parts:
        raise InvalidValue("population", 0, "at least one device that answers in the first w steps")
    for _ in range(w - 1):  # nobody can be asked again before the search has left the window
        yield search.release(latest, published=False)
    people = sum(one.n for one in parts)
    weights = np.array([one.n for one in parts]) / people
    shares = weights @ np.array([one.value for one in parts])
    errors = np.sqrt(weights**2 @ np.array([one.variance for one in parts]))
    shares = np.where(shares > SURE * errors, shares, 0.0)  # noise in a cell far out would count for much
    shares = shares / max(shares.sum(), 1e-300)
    each = people / w
    threshold = best_threshold(shares, edges, epsilon=epsilon, n=each)
    decide, division = METHODS[method]
    account = division(Means(0.0, threshold), epsilon=epsilon, w=w)
    account.step = search.step
    yield from _biased(decide(account, **options))


def _biased(stream: Protocol) -> Protocol:
    """The same stream, its releases marked: a clipped mean is not the mean, and its interval cannot know how far."""
    said = next(stream)
    while True:
        if isinstance(said, Release):
            said = replace(said, estimate=replace(said.estimate, bias="heuristic"))
        reply = yield said
        said = stream.send(reply)


def best_threshold(shares: Floats, edges: Floats, *, epsilon: float, n: float) -> float:
    """The upper border with the least variance plus squared clipping bias, from n reports.

    Example:
        >>> best_threshold(np.array([0.9, 0.1, 0.0]), np.array([0.0, 1.0, 10.0, 100.0]), epsilon=1.0, n=1000.0)
        10.0
    """
    middles = (edges[:-1] + edges[1:]) / 2
    errors = []
    for threshold in edges[1:]:
        lost = float(shares @ np.maximum(middles - threshold, 0.0))
        question = Means(0.0, float(threshold))
        errors.append(question.error(units_of(epsilon), n, np.array([threshold / 2])) + lost**2)
    return float(edges[1:][int(np.argmin(errors))])
