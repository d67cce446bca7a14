"""Checks that wrong input is refused as a whole, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hubbub.checks.draws import CountingRandom
from hubbub.checks.failure import require, require_refusal
from hubbub.checks.values import bad_batches, candidates_for, some_reports, some_values
from hubbub.core.errors import InvalidValue, SpecMismatch
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import Mechanism, ReportFormat

_FOREIGN = "f" * 32


def check_foreign(mechanism: ReportFormat, rng_seed: int = 1) -> None:
    """Reports and sketches of another spec are refused with SpecMismatch, and so is merging with them."""
    reports = some_reports(mechanism, 12, Random(seed=rng_seed))
    sketch = mechanism.accumulate(reports)
    foreign = Reports(_FOREIGN, public=reports.public, private=reports.private)
    stranger = Sketch(_FOREIGN, sketch.n, sketch.counts)
    misshapen = Sketch(sketch.spec_id, sketch.n, np.zeros((3, 5, 7), dtype=np.int64))
    candidates = candidates_for(mechanism)
    require_refusal("accumulating foreign reports", SpecMismatch, lambda: mechanism.accumulate(foreign))
    require_refusal("estimating from a foreign sketch", SpecMismatch, lambda: mechanism.estimate(stranger, candidates))
    require_refusal(
        "estimating from a misshapen sketch", InvalidValue, lambda: mechanism.estimate(misshapen, candidates)
    )
    require_refusal("merging with a foreign sketch", SpecMismatch, lambda: sketch + stranger)
    require_refusal("joining foreign reports", SpecMismatch, lambda: Reports.concat([reports, foreign]))
    require(sketch == mechanism.accumulate(reports), "a refusal changed a sketch")


def check_bad_values(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """Values outside the domain are refused before a byte is drawn, and the next batch is what it would have been."""
    values = some_values(mechanism, 10, Random(seed=rng_seed))
    wanted = mechanism.randomize(values, Random(seed=rng_seed))
    rng = CountingRandom(seed=rng_seed)
    for bad in bad_batches(mechanism):
        require_refusal(f"the batch {bad!r}", InvalidValue, lambda bad=bad: mechanism.randomize(bad, rng))  # type: ignore[misc]
        require(rng.drawn == 0, f"refusing the batch {bad!r} drew {rng.drawn} random bytes")
    for other in (None, np.random.default_rng(1), 7):
        require_refusal(f"rng={other!r}", InvalidValue, lambda rng=other: mechanism.randomize(values, rng))  # type: ignore[misc]
    require(mechanism.randomize(values, rng) == wanted, "after a refusal the same bytes give other reports")


def check_hostile_columns(mechanism: ReportFormat, rng_seed: int = 1) -> None:
    """Reports that no client can have made are refused: columns of another type, shape, name or range."""
    reports = some_reports(mechanism, 12, Random(seed=rng_seed))
    sketch = mechanism.accumulate(reports)
    for flaw, columns in _hostile(mechanism, reports):
        hostile = Reports(mechanism.spec_id, **columns)
        require_refusal(f"accumulating reports with {flaw}", InvalidValue, lambda r=hostile: mechanism.accumulate(r))  # type: ignore[misc]
    require(mechanism.accumulate(reports) == sketch, "after a refusal the same reports give another sketch")


def _hostile(mechanism: ReportFormat, reports: Reports) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    good = {"public": dict(reports.public), "private": dict(reports.private)}
    other = {"public": "private", "private": "public"}
    surplus = np.zeros(len(reports), dtype=np.uint8)
    for part in good:
        yield f"one more {part} column", {**good, part: {**good[part], "surplus": surplus}}
    for column in mechanism.columns:
        part, name, array = column.part, column.name, good[column.part][column.name]

        def swap(
            new: Any, part: str = part, name: str = name, good: dict[str, dict[str, Any]] = good
        ) -> dict[str, dict[str, Any]]:
            return {**good, part: {**good[part], name: new}}

        for dtype in ("i8", "u1", "u4"):
            if np.dtype(dtype) != array.dtype:
                yield f"{name} as {dtype}", swap(array.astype(dtype))
        yield f"{name} with one more axis", swap(array[..., None])
        yield f"{name} with one more side", swap(np.stack([array, array], axis=1))
        without = {key: value for key, value in good[part].items() if key != name}
        yield (
            f"{name} as a {other[part]} column",
            {
                part: without or {"surplus": surplus},
                other[part]: {**good[other[part]], name: array},
            },
        )
        if column.below is not None and column.below <= np.iinfo(array.dtype).max:
            for wrong in {column.below, int(np.iinfo(array.dtype).max)}:
                spoilt = array.copy()
                spoilt.reshape(-1)[-1] = wrong
                yield f"{name} holding {wrong}", swap(spoilt)
        if np.iinfo(array.dtype).min < 0:
            spoilt = array.copy()
            spoilt.reshape(-1)[-1] = np.iinfo(array.dtype).min
            yield f"{name} holding {np.iinfo(array.dtype).min}", swap(spoilt)
