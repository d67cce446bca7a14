"""Checks of reports and sketches as data: merging in any order, reading back from bytes, empty batches."""

from __future__ import annotations

from hubbub.checks.failure import require, require_refusal
from hubbub.checks.values import candidates_for, some_reports
from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.core.reports import Reports
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import Mechanism, ReportFormat


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
