"""Sentences of a plan: why an oracle was picked, and why the others were not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hubbub.privacy.plan_request import PlanRequest
from hubbub.privacy.poisoning import part_text, warns
from hubbub.privacy.predict import TIE, Prediction, pick


def reason(rows: Sequence[Prediction], picked: Prediction, request: PlanRequest, epsilon: float) -> str:
    """Why the oracle was picked, and what the rule of section 3.4.1 says for a domain of this size."""
    within = "" if request.most_bytes is None else f" of the reports within {request.most_bytes} bytes"
    if request.most_shift is not None:
        within += f", of those that {part_text(request.forged)} forged reports move by at most {request.most_shift:.3g}"
    errors = [row.stderr for row in rows if row.stderr is not None and pick([row], request) is not None]
    if picked.stderr is not None and round(picked.stderr / min(errors), 3) == 1:
        first = f"{picked.mechanism} has the smallest standard error{within}."
    else:
        first = f"{picked.mechanism} is within 1% of the smallest standard error{within}, and costs the server least."
    limit = 3 * math.exp(min(epsilon, 700.0)) + 2
    if request.size < limit:
        return f"{first} d = {request.size:,} is below 3 e^eps + 2 = {limit:,.4g}, where direct encoding (GRR) is best."
    compared = f"d = {request.size:,} is not below 3 e^eps + 2 = {limit:,.4g}"
    return f"{first} {compared}, so direct encoding (GRR) has more error."


def explained(row: Prediction, picked: Prediction, request: PlanRequest) -> Prediction:
    """The row, marked as picked or with the reason why not."""
    if row is picked:
        return replace(row, picked=True, why="picked")
    if row.stderr is None or picked.stderr is None:
        return row
    if row.bias != "none":
        return replace(row, why="never picked: a bias that no number of reports removes")
    if not request.fits(row.bytes):
        return replace(row, why=f"{row.bytes:,} bytes a report, above {request.most_bytes:,}")
    if not request.tolerates(row.shift):
        assert row.shift is not None
        moved = f"{part_text(request.forged)} forged reports move a share by {row.shift:.3g}"
        return replace(row, why=f"{moved}, above {request.most_shift:.3g}")
    times = row.stderr / picked.stderr
    if times >= 2:
        return replace(row, why=f"{times:.1f} times the error of {picked.mechanism}")
    if times > 1 + TIE:
        return replace(row, why=f"{times - 1:.0%} more error than {picked.mechanism}")
    return replace(row, why=f"as accurate as {picked.mechanism}, which costs no more")


def moved_far(rows: Sequence[Prediction], picked: Prediction, request: PlanRequest) -> tuple[str, ...]:
    """A warning for each oracle that forged reports can move much further than the picked one."""
    assert picked.shift is not None
    return tuple(
        f"{row.mechanism}: if {part_text(request.forged)} of the reports are forged, they can move a share by "
        f"{100 * row.shift:.1f} percentage points, {row.shift / picked.shift:.0f} times as far as with "
        f"{picked.mechanism}."
        for row in rows
        if row.shift is not None and warns(row.shift / request.forged, picked.shift / request.forged)
    )
