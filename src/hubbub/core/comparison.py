"""Parts of an estimate, and how much larger one is than another, with intervals.

Two estimates from the same reports have errors that go together. The parts of one estimate know how: it declares their
covariance. Of two separate estimates that rest on the same reports nothing is known, and they are refused. Estimates
from different reports are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate, Origin
from hubbub.core.reports import Floats

MOST_WEIGHTS = 10_000_000
"""Parts of one estimate are compared by a matrix of at most this many weights."""


def part(estimate: Estimate, name: str | int | Sequence[str | int]) -> Estimate:
    """One value of an estimate by its label or position, or several in a row."""
    names = estimate.names()
    chosen = [name] if isinstance(name, str) or not isinstance(name, Sequence | np.ndarray) else list(name)
    places = np.array([_place(each, names) for each in chosen], dtype=np.int64)
    taken = estimate.taken(places)
    if len(places) * len(estimate) > MOST_WEIGHTS:
        return taken
    rows = np.zeros((len(places), len(estimate)))
    rows[np.arange(len(places)), places] = 1.0
    return taken.made_of(estimate, rows)


def _place(name: object, names: Sequence[str]) -> int:
    if isinstance(name, str):
        if name not in names:
            known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            raise InvalidValue("label", name, f"one of {known}")
        return names.index(name)
    if isinstance(name, bool) or not isinstance(name, int | np.integer) or not 0 <= name < len(names):
        raise InvalidValue("position", name, f"a label, or an integer from 0 to {len(names) - 1}")
    return int(name)


def difference(first: Estimate, second: Estimate) -> Estimate:
    """The first minus the second, value by value; either may be a single value."""
    first, second = _aligned(first, second)
    common = _common(first, second)
    names = _names(first, second, "-")
    if common is not None:
        root, rows, other = common
        return replace(root.linear(rows - other), labels=names).made_of(root, rows - other)
    least, most = first.ends[0] - second.ends[1], first.ends[1] - second.ends[0]
    together = _together(first, second)
    return replace(
        together,
        value=first.value - second.value,
        variance=first.variance + second.variance,
        centre=None if first.centre is second.centre is None else first.middle - second.middle,
        bounds=(least, most),
        labels=names,
    )


def moments_of_both(first: Estimate, second: Estimate) -> tuple[Estimate, Estimate, Floats, int]:
    """Both with as many values; three rows, their variances and between them the covariance; the number of reports."""
    first, second = _aligned(first, second)
    common = _common(first, second)
    if common is None:
        moments = np.stack([first.variance, np.zeros(len(first)), second.variance])
        return first, second, moments, first.n + second.n
    root, rows, other = common
    if type(root) is Estimate and (root.noise is None or not root.noise.knows_pairs):
        allowed = "those of a mechanism that declares their covariance"
        raise InvalidValue("estimates", "two values of one estimate", allowed)
    together = (root.linear(rows + other).variance - root.linear(rows - other).variance) / 4
    return first, second, np.stack([first.variance, together, second.variance]), root.n


def _together(first: Estimate, second: Estimate) -> Estimate:
    """What two independent estimates rest on together, with the values of the first."""
    order = ("none", "ratio", "consistent", "heuristic")
    return Estimate(
        first.value,
        first.variance,
        first.n + second.n,
        max(first.bias, second.bias, key=order.index),
        "quantity",
        reports=first.reports | second.reports,
    )


def _aligned(first: Estimate, second: Estimate) -> tuple[Estimate, Estimate]:
    for estimate in (first, second):
        if not isinstance(estimate, Estimate) or not estimate.normal:
            raise InvalidValue("estimate", type(estimate).__name__, "one with normal errors")
    if len(first) != len(second):
        if len(second) == 1:
            second = second[[0] * len(first)]
        elif len(first) == 1:
            first = first[[0] * len(second)]
        else:
            raise InvalidValue("estimates", (len(first), len(second)), "as many values, or one of them a single value")
    elif len(first) > 1 and first.labels != second.labels:
        raise InvalidValue(
            "labels", "different ones", "the same values in the same order: choose them by estimate[[...]]"
        )
    return first, second


def _common(first: Estimate, second: Estimate) -> tuple[Estimate, Floats, Floats] | None:
    """The estimate that both are parts of, with their weights in it; None if they are independent."""
    origins = [Origin(estimate, None) if estimate.origin is None else estimate.origin for estimate in (first, second)]
    if origins[0].root is not origins[1].root:
        if first.reports & second.reports:
            allowed = "parts of one estimate, as in e['tea'] - e['coffee'], or estimates of different reports"
            raise InvalidValue("estimates", "two that share reports", allowed)
        return None
    root = origins[0].root
    if len(first) * len(root) > MOST_WEIGHTS:
        raise InvalidValue("estimates", f"{len(first):,} parts of {len(root):,}", f"{MOST_WEIGHTS:,} weights at most")
    rows, other = (origin.weights(len(root)) for origin in origins)
    return root, rows, other


def _names(first: Estimate, second: Estimate, sign: str) -> tuple[str, ...] | None:
    if first.labels == second.labels:
        return first.labels
    return tuple(f"{a} {sign} {b}" for a, b in zip(first.names(), second.names(), strict=True))
