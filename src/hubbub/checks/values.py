"""Values for checks: allowed values, populations of them, and values that a mechanism must refuse."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings, Values
from hubbub.core.domain.texts import WORDS
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Array, Floats, Ints, Reports, Sketch
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.numeric.mean import MeanMechanism
from hubbub.mechanisms.sets.set_mechanism import SetMechanism
from hubbub.mechanisms.stateful import Stateful
from hubbub.mechanisms.ternary.ternary import Quantity, TernaryMechanism
from hubbub.mechanisms.ternary.vectors import as_ternary
from hubbub.privacy.enumeration import domain_of
from hubbub.random.source import Random


def range_of(mechanism: Mechanism) -> tuple[float, float] | None:
    """The lowest and the highest value of a mechanism for numbers."""
    low, high = getattr(mechanism, "low", None), getattr(mechanism, "high", None)
    return (low, high) if isinstance(low, float) and isinstance(high, float) else None


def some_values(mechanism: ReportFormat, n: int, rng: Random) -> Any:
    """A population of n, in random order: common values and rare ones; about half of all values are held by nobody.

    Example:
        >>> from hubbub import GRR
        >>> sorted(some_values(GRR(epsilon=1.0, domain=4), 6, Random(seed=1)).tolist())
        [0, 0, 0, 0, 1, 1]
    """
    every = mechanism.example_values(4096)
    common = every[: (len(every) + 1) // 2]
    weights = 1 / np.arange(1, len(common) + 1)
    borders = np.round(np.cumsum(weights) / weights.sum() * n).astype(np.int64)
    index = np.searchsorted(borders, np.arange(n), side="right")[rng.permutation(n)]
    return take(common, index)


def population(mechanism: ReportFormat, n: int, rng: Random) -> Any:
    """A population of `some_values` in a form whose rows are fast to take: vectors and sets are encoded once."""
    values = some_values(mechanism, n, rng)
    if isinstance(mechanism, SetMechanism):
        return mechanism.encode(values)
    return as_ternary(values, mechanism.dimension) if isinstance(mechanism, TernaryMechanism) else values


def rows_of(values: Values, index: Ints) -> Any:
    """Some of a population, by position."""
    return [values[k] for k in index] if isinstance(values, list) else values[index]


def some_reports(mechanism: ReportFormat, n: int, rng: Random) -> Reports:
    """Reports of such a population: each made afresh, or the first that a device makes from its state."""
    values = some_values(mechanism, n, rng)
    if isinstance(mechanism, Mechanism):
        return mechanism.randomize(values, rng)
    assert isinstance(mechanism, Stateful)
    everyone = np.ones(n, dtype=bool)
    states, reports, speaks = mechanism.step(mechanism.enroll(n, rng), 0, values, rng, everyone)
    return mechanism.with_enrolment(states, reports, speaks, everyone)[0]


def take(values: list[Any], index: Array) -> Any:
    """Values by position: an array where they are numbers, else a list."""
    if isinstance(values[0], int | float):
        return np.array(values)[index]
    return rows_of(values, index)


def quantities_of(mechanism: Mechanism) -> tuple[Quantity, ...]:
    """The quantities that a mechanism estimates without bias; "mean" alone, unless it is a ternary mechanism."""
    answers = mechanism.answers if isinstance(mechanism, TernaryMechanism) else ("mean",)
    return tuple(quantity for quantity in answers if quantity != "conditional")


def truth_of(mechanism: Mechanism, values: Values, of: Quantity = "mean") -> Floats | None:
    """What an estimate from these values' reports should come to; None where the mechanism does not say.

    A mechanism that estimates neither shares nor a mean says it in a method `truth(values)`.
    """
    own = getattr(mechanism, "truth", None)
    if own is not None:
        return np.asarray(own(values), dtype=np.float64)
    if isinstance(mechanism, MeanMechanism):
        return np.array([np.asarray(values).mean()])
    if isinstance(mechanism, TernaryMechanism):
        people = as_ternary(values, mechanism.dimension)
        return people.means() if of == "mean" else people.frequencies()
    if not isinstance(mechanism, FrequencyOracle):
        return None
    codes = mechanism.encode(values)
    return np.bincount(codes, minlength=mechanism.size) / len(codes)


def candidates_for(mechanism: ReportFormat) -> list[object] | None:
    """The candidates to estimate: words where the domain is open, None elsewhere."""
    domain = domain_of(mechanism)
    return mechanism.example_values(WORDS) if isinstance(domain, Strings) else None


def estimated(mechanism: Mechanism, sketch: Sketch, of: Quantity = "mean") -> Estimate:
    """The estimate of a population of `some_values`, whose ternary vectors hold signs: nothing was rounded."""
    if isinstance(mechanism, TernaryMechanism):
        return mechanism.estimate(sketch, of=of, signs=True)
    return mechanism.estimate(sketch)


def bad_batches(mechanism: Mechanism) -> Iterator[Any]:
    """Batches that must be refused whole: wrong types, values outside the domain, a bad value after a good one."""
    yield from (None, 1j, object(), [None], [object()], [float("nan")], [b"bytes"], [[["deep"]]])
    good = mechanism.example_values(1)[0]
    outside = _outside(domain_of(mechanism), range_of(mechanism))
    if isinstance(mechanism, TernaryMechanism):
        outside = _outside_ternary(mechanism.dimension)
    for bad in outside:
        yield [bad]
        yield [good, bad]


def _outside_ternary(dimension: int) -> tuple[object, ...]:
    return (
        {-1: 1},
        {dimension: 1},
        {0: 2},
        {0: float("nan")},
        {0.5: 1},
        {"0": 1},
        [2] + [0] * (dimension - 1),
        [0] * (dimension + 1),
        5,
    )


def _outside(domain: Domain | None, bounds: tuple[float, float] | None) -> tuple[object, ...]:
    if isinstance(domain, Numeric):
        bounds = domain.low, domain.high
    if isinstance(domain, Ordinal):
        return (-1, domain.size, 1 << 70, 0.5, "0")
    if isinstance(domain, Categorical):
        return ("".join(domain.names) + "?", 0)
    if bounds is not None:
        low, high = bounds
        return (2 * low - high, 2 * high - low, float("inf"), "a")
    if isinstance(domain, Strings):
        return (5, "x" * (domain.longest + 1), "\ud800")
    if isinstance(domain, Sets):
        return ({-1}, [0, 0], 5)
    return ()
