"""The check that inputs are not changed, and that results share no memory with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hubbub.checks.failure import require
from hubbub.checks.values import candidates_for, some_values
from hubbub.core.random import Random
from hubbub.mechanisms.base import Mechanism


def check_no_aliasing(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """Values stay as they were, later changes of them do not change results, and no result can be written to."""
    rng = Random(seed=rng_seed)
    values = some_values(mechanism, 30, rng)
    before = _copy(values)
    reports = mechanism.randomize(values, rng)
    require(_same(values, before), "randomize changed the values it was given")
    sent = reports.to_bytes()
    for position in range(len(values)):
        values[position] = mechanism.example_values(2)[-1]
    require(reports.to_bytes() == sent, "the reports changed when the values did")

    columns = [*reports.public.values(), *reports.private.values()]
    if isinstance(values, np.ndarray):
        require(not any(np.shares_memory(column, values) for column in columns), "a column is the caller's own array")
    sketch = mechanism.accumulate(reports)
    require(reports.to_bytes() == sent, "accumulate changed the reports")
    require(not any(np.shares_memory(column, sketch.counts) for column in columns), "a sketch shares a report's memory")
    counts = sketch.to_bytes()
    estimate = mechanism.estimate(sketch, candidates_for(mechanism))
    again = mechanism.estimate(sketch, candidates_for(mechanism))
    require(sketch.to_bytes() == counts, "estimate changed the sketch")
    require(np.array_equal(estimate.value, again.value), "two estimates of one sketch differ")
    for array in (*columns, sketch.counts, estimate.value, estimate.variance):
        require(not array.flags.writeable, "a result can be written to")


def _copy(values: Any) -> Any:
    return values.copy() if isinstance(values, np.ndarray) else list(values)


def _same(values: Any, before: Any) -> bool:
    return np.array_equal(values, before) if isinstance(values, np.ndarray) else bool(values == before)
