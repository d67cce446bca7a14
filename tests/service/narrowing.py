"""The most common of many values, by a study of three rounds: each asks others, about fewer values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.protocols.ask import CIRCLE, Arc, Ask
from hubbub.protocols.driver import Count, Protocol, Release, ask_all, ask_count, ask_once
from hubbub.protocols.statistic import Frequencies
from hubbub.protocols.views.basic import Among

__all__ = ["ARITHMETIC", "PARTS", "ROUNDS", "narrowing"]

ARITHMETIC = 1
"""Goes up with every change of what is asked or released."""
ROUNDS, PARTS = 3, 2
_QUARTER = CIRCLE // 4


def narrowing(size: int, *, epsilon: float, most: int) -> Protocol:
    """Which of `size` values are the most common, and their shares.

    A quarter of the people chooses and another tests, in one round, as two parts: the first quarter's estimate names
    4 `most` candidates, and their supports are counted among the reports that were kept of the second, so that none is
    estimated from what it was chosen by. The third quarter is asked about the better half of them, and the last about
    the best `most` by what all before said. So everyone answers once, with all of epsilon. A round that nobody answered
    ends it.

    Parameters
    ----------
    size
        How many values there are.
    epsilon
        What one report spends: all that a device is asked in a run.
    most
        How many values are released.

    Example:
        >>> from hubbub import Random
        >>> from hubbub.protocols.driver import CountResult
        >>> from hubbub.protocols.driver import converse
        >>> rng, kept = Random(seed=1), {}
        >>> def answer(ask):  # of each quarter 4,000 people: most have 7, some 9
        ...     reports = ask.mechanism.randomize(ask.view(np.repeat([7, 9, 30], [2400, 1200, 400])), rng)
        ...     kept[ask.ask_id] = reports
        ...     return ask.mechanism.accumulate(reports)
        >>> def counted(count):
        ...     sketch = count.oracle.support(kept[count.ask.ask_id], count.candidates)
        ...     return CountResult(sketch.n, sketch.counts)
        >>> (release,) = converse(narrowing(64, epsilon=3.0, most=2), answer, count=counted, rounds=ROUNDS, parts=PARTS)
        >>> release.estimate.labels, release.estimate.value.round(1).tolist(), list(release.estimates)
        (('7', '9'), [0.6, 0.3], ['shares', 'tested', 'candidates'])
    """
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= 4 * most <= size:
        raise InvalidValue("most", most, f"an integer from 1 to {size // 4}, a quarter of the values")
    units = units_of(epsilon)
    whole = Frequencies(size).mechanism(units)
    choosing, testing = (
        Ask(mechanism=whole, step=0, cohort=Arc(part * _QUARTER, _QUARTER), kept=part == 1) for part in range(PARTS)
    )
    chosen, tested = yield from ask_all([choosing, testing])
    heard = chosen.n + tested.n
    if not (chosen.n and tested.n):
        yield _stopped(1, heard)
        return
    codes = _best(whole.estimate(chosen).value, np.arange(size), 4 * most)
    counted = yield from ask_count(Count(testing, tuple(codes.tolist())))
    shares = whole.estimate(whole.support_sketch(codes.tolist(), counted.n, counted.support), codes.tolist())
    estimates = {"tested": shares}
    weight = shares.value
    for round, left in enumerate((2 * most, most), start=2):
        codes, weight = _sorted(codes, weight, left)
        view = Among(tuple(codes.tolist()))
        oracle = Frequencies(view.size).mechanism(units)
        ask = Ask(mechanism=oracle, step=0, view=view, cohort=Arc(round * _QUARTER, _QUARTER))
        sketch = yield from ask_once(ask)
        heard += sketch.n
        if not sketch.n:
            yield _stopped(round, heard)
            return
        told = _named(oracle.estimate(sketch), codes)
        weight = (weight + told.value) / 2
        estimates["candidates" if round == 2 else "shares"] = told
    order = ("shares", "tested", "candidates")
    yield Release(
        step=0, estimates={name: estimates[name] for name in order}, published=True, spent=1.0, n=float(heard)
    )


def _best(values: NDArray[np.float64], codes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The codes with the highest values, ascending; of equal ones the smallest."""
    return np.sort(codes[np.argsort(-values, kind="stable")[:most]])


def _sorted(codes: NDArray[np.int64], weight: NDArray[np.float64], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The best codes, ascending, with their weights."""
    best = _best(weight, codes, most)
    return best, weight[np.searchsorted(codes, best)]


def _named(estimate: Estimate, codes: NDArray[np.int64]) -> Estimate:
    """The shares of the codes, without that of all others."""
    return Estimate(
        estimate.value[:-1], estimate.variance[:-1], estimate.n, bias=estimate.bias, labels=tuple(map(str, codes))
    )


def _stopped(round: int, heard: int) -> Release:
    why = f"nobody answered in round {round}"
    return Release(step=0, estimates={}, published=False, spent=1.0, n=float(heard), stopped=why)
