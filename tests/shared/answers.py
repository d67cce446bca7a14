"""What devices answer and what is estimated from it, in one call each, and whether intervals hold the truth."""

from collections.abc import Sequence

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Bools, Columns, Floats, Reports, Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.random.source import Random


def answered(ask: Ask, values: Values, rng: Random) -> Sketch:
    """The sketch of the reports of people who have these values."""
    assert isinstance(ask.mechanism, Mechanism)
    return sketched(ask.mechanism, ask.view(values), rng)


def sketched(mechanism: Mechanism, values: Values, rng: Random) -> Sketch:
    """The sketch of one report for each value."""
    return mechanism.accumulate(mechanism.randomize(values, rng))


def estimated(mechanism: Mechanism, values: Values, rng: Random) -> Estimate:
    """What one report for each value tells."""
    return mechanism.estimate(sketched(mechanism, values, rng))


def outputs_of(mechanism: Mechanism, public: Columns | None = None) -> Reports:
    """Every report of a mechanism that lists them."""
    outputs = mechanism.outputs(public)
    assert outputs is not None
    return outputs


def holds(estimate: Estimate, truth: Sequence[float] | Floats | float, level: float = 0.95) -> Bools:
    """Which of the intervals hold the truth."""
    low, high = estimate.interval(level)
    return np.asarray((low <= np.asarray(truth)) & (np.asarray(truth) <= high))


def room_for_few_signs(means: Floats, n: int) -> Floats:
    """How much further off means of n vectors may be that were rounded to so few signs that errors are not normal.

    Errors are estimated from the signs that came: where none came, though some were expected, they say nothing. A
    binomial count with a mean below 14 is further off than this with probability below 1e-6; from there on it is 0.
    """
    expected = np.abs(means) * n
    return np.where(expected < 14, (5 * np.sqrt(expected) + 10) / n, 0.0)
