"""Releases as the store keeps them (a `ReleaseRow` with a JSON payload) and as the API shows them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.estimate import Estimate
from hubbub.core.noise import check_level
from hubbub.core.spec import Json
from hubbub.protocols.driver import MAIN, Release
from hubbub.service.store.base import ReleaseRow
from hubbub.statistics.ratios import Ratios
from hubbub.statistics.selection import Selected

__all__ = ["alike", "release_json", "release_row", "same_release"]

TOLERANCE = 1e-9
"""How closely a replay must reproduce numbers: another version of numpy may add them up in another order."""

_ONLY_SOME_ESTIMATES = ("centre", "cut", "ratio")
"""Keys that only some kinds of estimates have. They reveal the values, and are withheld with them."""
_ESTIMATE_KEYS = (
    *("n", "bias", "kind", "labels", "value", "variance", *_ONLY_SOME_ESTIMATES),
    *("low", "high", "interval", "withheld"),
)


def release_row(
    release: Release, *, collection: str, question: str, time: float, minimum_batch: int, number: int = 0
) -> ReleaseRow:
    """The row to store for a release.

    The main estimate is stored whole, with the reason for withholding it if it rests on fewer than `minimum_batch`
    reports. Other estimates that rest on fewer reports are stored without their numbers.
    """

    def too_few(estimate: Estimate) -> str | None:
        reason = f"{estimate.n:,} reports; at least {minimum_batch:,} are needed"
        return reason if estimate.n < minimum_batch else None

    main, *others = release.estimates or (MAIN,)
    payload: dict[str, Json] = {
        "published": release.published,
        "spent": _finite(release.spent),
        "population": _finite(release.n),
        **_estimate_payload(release.estimate),
    }
    if release.lost is not None:
        biases: list[Json] = [_finite(bias) for bias in release.lost.bias]
        payload["lost"] = {"due": release.lost.due, "came": release.lost.came, "bias": biases}
    if release.stopped is not None:
        payload["stopped"] = release.stopped
    if main != MAIN or others:
        estimates: dict[str, Json] = {main: {}}  # the main estimate is at the top of the payload
        for name in others:
            estimate = release.estimates[name]
            entry, withheld = _estimate_payload(estimate), too_few(estimate)
            if withheld is not None:
                entry = {**entry, "value": None, "variance": None, "withheld": withheld}
                for key in _ONLY_SOME_ESTIMATES:
                    entry.pop(key, None)
            estimates[name] = entry
        payload["estimates"] = estimates
    withheld = None if release.stopped is not None and not release.estimates else too_few(release.estimate)
    text = json.dumps(payload, allow_nan=False)
    return ReleaseRow(collection, question, release.step, time, text, withheld, number)


def _estimate_payload(estimate: Estimate) -> dict[str, Json]:
    return {
        "n": estimate.n,
        "bias": estimate.bias,
        "kind": estimate.kind,
        "labels": None if estimate.labels is None else list(estimate.labels),
        "value": _list(estimate.value),
        "variance": _list(estimate.variance),
        **({} if estimate.centre is None else {"centre": _list(estimate.centre)}),
        **({"cut": _finite(estimate.cut)} if isinstance(estimate, Selected) else {}),
        **({"ratio": estimate.parts()} if isinstance(estimate, Ratios) else {}),
    }


def same_release(a: ReleaseRow, b: ReleaseRow) -> bool:
    """Whether two rows are the same release up to rounding, whenever each was released."""
    return (a[:3], a.withheld) == (b[:3], b.withheld) and alike(json.loads(a.payload), json.loads(b.payload))


def release_json(row: ReleaseRow, *, level: float = 0.95) -> dict[str, Json]:
    """A release as the API shows it: with confidence intervals, or with the reason why it is withheld.

    The main estimate is at the top level; "estimates" has all estimates by name. Unknown numbers are null. If a value
    has no interval because its step got no reports, "interval" is "unknown" and `low` and `high` are null.
    """
    check_level(level)
    payload: dict[str, Any] = json.loads(row.payload)
    head: dict[str, Json] = {"question": row.question, "step": row.step, "time": row.time, "withheld": row.withheld}
    name, *others = entries = payload.pop("estimates", {MAIN: {}})
    main = _with_intervals({**payload, "withheld": row.withheld}, level)
    estimates: dict[str, Json] = {name: {key: main[key] for key in _ESTIMATE_KEYS if key in main}}
    for other in others:
        estimates[other] = _with_intervals({"withheld": None, **entries[other]}, level)
    stopped = payload.get("stopped")
    return {**head, **main, "level": level, "stopped": stopped, "number": row.number, "estimates": estimates}


def _with_intervals(entry: dict[str, Any], level: float) -> dict[str, Json]:
    """The JSON of a stored estimate with labels and the ends of its intervals.

    A withheld estimate gets no labels either: those of a ranking are the values that were found.
    """
    if entry["withheld"] is not None:
        public = {key: value for key, value in entry.items() if key not in _ONLY_SOME_ESTIMATES}
        nulls = dict.fromkeys(("value", "variance", "low", "high"))
        return {**public, "labels": [], **nulls, "interval": "unknown"}
    labels = entry.get("labels") or [str(code) for code in range(len(entry["value"] or ()))]
    value, variance = (np.array(entry[name], dtype=np.float64) for name in ("value", "variance"))  # null becomes NaN
    low, high = stored_estimate(entry, value, np.maximum(variance, 0.0)).interval(level)
    unknown = bool((np.isfinite(value) & ~(np.isfinite(low) & np.isfinite(high))).any())
    interval = "unknown" if unknown else "known"
    return {**entry, "labels": labels, "low": _list(low), "high": _list(high), "interval": interval}


def stored_estimate(entry: Mapping[str, Any], value: NDArray[np.float64], variance: NDArray[np.float64]) -> Estimate:
    """The estimate of a stored payload, with all that its intervals depend on."""
    if "ratio" in entry:
        return Ratios.from_parts(entry["ratio"], value, variance)
    if "cut" not in entry:
        return Estimate(value, variance, 0, centre=entry.get("centre"))
    cut = -math.inf if entry["cut"] is None else entry["cut"]
    return Selected(value, variance, 0, centre=entry.get("centre"), cut=cut)


def _list(numbers: NDArray[np.float64]) -> list[Json]:
    plain: list[Json] = numbers.tolist()
    return plain if np.isfinite(numbers).all() else [_finite(number) for number in numbers.tolist()]


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def alike(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal up to rounding of their numbers."""
    if a == b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    try:
        first, second = np.array(a, dtype=np.float64), np.array(b, dtype=np.float64)  # null becomes NaN
    except (TypeError, ValueError):
        both = isinstance(a, list) and isinstance(b, list) and len(a) == len(b)
        return both and all(map(alike, a, b))
    return first.shape == second.shape and np.allclose(first, second, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
