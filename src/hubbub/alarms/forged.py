"""Whether the reports to an ask look forged: a test whose rate of false alarms holds whatever the values of people are.

Three statistics of genuine reports do not depend on who holds what (`hubbub.mechanisms.frequency.screen`):

- *total*: how many values all reports support together. Its mean and variance are known; Bennett's inequality.
- *sizes*: how many reports support k values, for each k. A binomial count with a known chance; its exact tails.
- *pairs*: for two values i and j, the sum of (s_i - q)(s_j - q) over reports. Its mean is 0. Chernoff's bound takes the
  larger of the moment generating functions of a holder of one of them, and of anyone else.

The smallest p-value counts as often as there are tests. All bounds hold at any number of reports: under genuine reports
the result is below a level with at most that probability. For local hashing it needs that any three values hash
independently over the seeds; the few that do not are known (`independent_pairs`), and left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from hubbub.alarms.sequential import Direction, Verdict, WatchState
from hubbub.core.errors import SpecMismatch
from hubbub.core.reports import Bools, Floats, Ints, Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.local_hashing import LocalHashing
from hubbub.mechanisms.frequency.screen import Screened, can_screen, counts_pairs, independent_pairs, sizes_counted
from hubbub.privacy.binomial_tails import at_least

_STEPS = np.geomspace(0.05, 20.0, 120)


class Suspicion(NamedTuple):
    """How likely genuine reports are to look at least as odd as these, and what is oddest about them."""

    p_value: float
    test: str
    oddity: str


def suspicion(mechanism: ReportFormat, sketch: Sketch) -> Suspicion | None:
    """The p-value of the reports of a sketch; None where forged ones look genuine, or some are fakes of shufflers.

    Without a screen only the total is tested.
    """
    if sketch.fakes or not sketch.n or not can_screen(mechanism):
        return None
    p, q = (float(rate) for rate in mechanism.rates)
    tests = [_total(mechanism, sketch, p, q)]
    if sketch.screen is not None:
        sizes, pairs = sizes_counted(mechanism), mechanism.size * (mechanism.size - 1) // 2
        if sketch.screen.size != sizes + pairs * counts_pairs(mechanism):
            raise SpecMismatch("screen", sketch.screen.size, f"{sizes} sizes and {pairs} pairs")
        if sizes:
            tests.append(_sizes(sketch.screen[:sizes], sketch.n, p, q))
        if counts_pairs(mechanism):
            tests.append(_pairs(mechanism, sketch, sketch.screen[sizes:], p, q))
    oddest = min(tests)
    return oddest._replace(p_value=min(len(tests) * oddest.p_value, 1.0))


def _total(mechanism: Screened, sketch: Sketch, p: float, q: float) -> Suspicion:
    n, size = sketch.n, mechanism.size
    mean, variance = p + (size - 1) * q, p * (1 - p) + (size - 1) * q * (1 - q)
    variance += 2 * q * (1 - q) * int((~_usable(mechanism)).sum())
    supported = int(sketch.counts.sum())
    distance = abs(supported - n * mean)
    most = max(mean, size - mean)
    grown = most * distance / (n * variance)
    exponent = n * variance / most**2 * ((1 + grown) * math.log1p(grown) - grown)
    oddity = f"a report supports {supported / n:.2f} values on average; genuine ones {mean:.2f}"
    return Suspicion(min(2 * math.exp(-exponent), 1.0), "total", oddity)


def _sizes(counts: Ints, n: int, p: float, q: float) -> Suspicion:
    chances = size_chances(counts.size - 1, p, q)
    below, above = np.cumsum(counts), np.cumsum(counts[::-1])[::-1]
    chance_below, chance_above = np.cumsum(chances), np.cumsum(chances[::-1])[::-1]
    several = (("exactly", counts, chances), ("at most", below, chance_below), ("at least", above, chance_above))
    least, oddity = math.inf, ""
    for kind, observed, expected in several:
        tails = at_least(observed, np.full(observed.size, n), np.clip(expected, 0.0, 1.0))
        size = int(np.argmin(tails))
        if tails[size] < least:
            least = float(tails[size])
            oddity = f"{observed[size]:,} reports support {kind} {size} values; {n * expected[size]:,.1f} are expected"
    return Suspicion(min(len(several) * counts.size * least, 1.0), "sizes", oddity)


def size_chances(size: int, p: float, q: float) -> Floats:
    """The probability that a genuine report supports 0, 1, ... values: its own with p, each other with q."""
    others = np.array([math.comb(size - 1, k) * q**k * (1 - q) ** (size - 1 - k) for k in range(size)])
    return np.asarray(np.append((1 - p) * others, 0.0) + np.append(0.0, p * others))


def _pairs(mechanism: Screened, sketch: Sketch, both: Ints, p: float, q: float) -> Suspicion:
    rows, columns = np.triu_indices(mechanism.size, 1)
    n, counts = sketch.n, sketch.counts
    usable = _usable(mechanism)
    rows, columns, both = rows[usable], columns[usable], both[usable]
    sums = both - q * (counts[rows] + counts[columns]) + n * q * q
    bounds = []
    for sign in (1.0, -1.0):
        place = int(np.argmax(sign * sums))
        tail = log_tail(float(sign * sums[place]), n, p, q, sign)
        bounds.append((tail, int(both[place]), int(rows[place]), int(columns[place]), float(sums[place])))
    tail, together, first, second, excess = min(bounds)
    names = mechanism._domain.labels or range(mechanism.size)
    more = "more" if excess > 0 else "fewer"
    both_names = f"{names[first]} and {names[second]}"
    oddity = f"{together:,} reports support both {both_names}: {abs(excess):,.0f} {more} than expected"
    return Suspicion(min(2 * sums.size * math.exp(tail), 1.0), "pairs", oddity)


def _usable(mechanism: Screened) -> Bools:
    """The pairs of values of which no third one's holders support both more often, or more rarely, than by chance."""
    pairs = mechanism.size * (mechanism.size - 1) // 2
    return independent_pairs(mechanism.size) if isinstance(mechanism, LocalHashing) else np.ones(pairs, dtype=bool)


def log_tail(distance: float, n: int, p: float, q: float, sign: float) -> float:
    """The logarithm of a bound on the probability that the sum of a pair, times the sign, is at least a distance."""
    if distance <= 0:
        return 0.0
    scale = distance / (n * (q * (1 - q)) ** 2) * _STEPS  # any of them gives a valid bound
    ends = np.array([-q, 1 - q])  # of one value: not supported, supported
    values = sign * np.outer(ends, ends)
    of_any, of_holder = np.array([1 - q, q]), np.array([1 - p, p])
    classes = [np.outer(of_any, of_any), np.outer(of_holder, of_any)]
    with np.errstate(over="ignore"):
        moments = np.exp(scale[:, None, None] * values[None])
        largest = np.max([(moments * chances).sum(axis=(1, 2)) for chances in classes], axis=0)
        return float(min(np.min(n * np.log(largest) - scale * distance), 0.0))


@dataclass(frozen=True)
class ForgedTest:
    """Raises an alarm where a round's reports look forged, and clears it with the next round that does not.

    Parameters
    ----------
    level
        The most that genuine reports of one round may raise it.
    """

    level: float
    sides: ClassVar[tuple[Direction, ...]] = ("below",)
    threshold: ClassVar[float | None] = None
    ends: ClassVar[float | None] = None
    baseline: ClassVar[int] = 0
    independent: ClassVar[bool] = True

    def update(self, state: WatchState, step: int, p_value: float) -> tuple[WatchState, Verdict | None]:
        """The state after the reports of one more round, and the decision if there is one."""
        state = replace(state, step=step, value=p_value, stderr=0.0)
        if p_value < self.level and state.raised is None:
            return replace(state, raised="below", since=step), Verdict("raised", "below", step)
        if p_value >= self.level and state.raised is not None:
            return replace(state, raised=None, since=None), Verdict("cleared", "below", step)
        return state, None


def round_suspicion(answered: Sequence[tuple[ReportFormat, Sketch]]) -> Suspicion | None:
    """The suspicion of all parts of a round together; None where none can be tested."""
    tested = [found for mechanism, sketch in answered if (found := suspicion(mechanism, sketch)) is not None]
    return min(tested)._replace(p_value=min(len(tested) * min(tested).p_value, 1.0)) if tested else None
