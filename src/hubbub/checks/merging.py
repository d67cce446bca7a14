"""Checks of reports and sketches as data: merging, reading back, shared memory, and wrong input refused as a whole."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hubbub.checks.draws import CountingRandom
from hubbub.checks.failure import require, require_refusal
from hubbub.checks.values import bad_batches, candidates_for, some_reports, some_values
from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue, SpecMismatch
from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.base import Mechanism, ReportFormat
from hubbub.random.source import Random


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
    estimate_again = mechanism.estimate(sketch, candidates_for(mechanism))
    require(sketch.to_bytes() == counts, "estimate changed the sketch")
    require(np.array_equal(estimate.value, estimate_again.value), "two estimates of one sketch differ")
    for array in (*columns, sketch.counts, estimate.value, estimate.variance):
        require(not array.flags.writeable, "a result can be written to")


def _copy(values: Values) -> Any:
    return values.copy() if isinstance(values, np.ndarray) else list(values)


def _same(values: Values, before: Any) -> bool:
    return np.array_equal(values, before) if isinstance(values, np.ndarray) else bool(values == before)


def check_merge_laws(mechanism: ReportFormat, rng_seed: int = 1) -> None:
    """Sketches merge in any order to the same bytes, those of the sketch of all reports; `empty()` adds nothing."""
    rng = Random(seed=rng_seed)
    reports = some_reports(mechanism, 60, rng)
    batches = reports[:10], reports[10:27], reports[27:]
    a, b, c = (mechanism.accumulate(batch) for batch in batches)
    whole = mechanism.accumulate(reports)
    require(whole.n == len(reports), f"a sketch of {len(reports)} reports says n = {whole.n}")
    for law, sketch in {
        "(a+b)+c": (a + b) + c,
        "a+(b+c)": a + (b + c),
        "c+(b+a)": c + (b + a),
        "a+b+c+empty": a + b + c + mechanism.empty(),
        "empty+a+b+c": mechanism.empty() + a + b + c,
        "the joined batches": mechanism.accumulate(Reports.concat(batches)),
        "the reports in another order": mechanism.accumulate(reports[rng.permutation(len(reports))]),
    }.items():
        require(
            sketch.to_bytes() == whole.to_bytes(),
            f"{law} gives n = {sketch.n}, {sketch.counts.ravel()[:8]}; all reports at once n = {whole.n}, "
            f"{whole.counts.ravel()[:8]}",
        )


def check_round_trip(mechanism: ReportFormat, rng_seed: int = 1) -> None:
    """Reports and sketches come back from their bytes; a report is as large as `report_bytes` says."""
    rng = Random(seed=rng_seed)
    reports = some_reports(mechanism, 20, rng)
    back = Reports.from_bytes(reports.to_bytes())
    require(back == reports and back.to_bytes() == reports.to_bytes(), "reports do not come back from their bytes")
    sketch = mechanism.accumulate(reports)
    require(mechanism.accumulate(back) == sketch, "reports that travelled give another sketch")
    require(Sketch.from_bytes(sketch.to_bytes()) == sketch, "a sketch does not come back from its bytes")
    require(
        reports.nbytes == 20 * mechanism.report_bytes,
        f"20 reports take {reports.nbytes} bytes, and report_bytes is {mechanism.report_bytes}",
    )
    require(mechanism.read_bare(reports.to_bare()) == reports, "reports do not come back from their values alone")


def check_empty(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """No values give no reports, no reports give the empty sketch, and estimating from that is refused."""
    reports = mechanism.randomize([], Random(seed=rng_seed))
    require(len(reports) == 0, f"an empty batch gives {len(reports)} reports")
    sketch = mechanism.accumulate(reports)
    require(sketch == mechanism.empty(), "the sketch of no reports is not empty()")
    require(Reports.from_bytes(reports.to_bytes()) == reports, "an empty batch does not come back from its bytes")
    require_refusal(
        "estimating from an empty sketch", InvalidValue, lambda: mechanism.estimate(sketch, candidates_for(mechanism))
    )


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
            {part: without or {"surplus": surplus}, other[part]: {**good[other[part]], name: array}},
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
