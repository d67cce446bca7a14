"""Releases as they are stored and shown."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.ratios import Ratios
from hubbub.core.selected import Selected
from hubbub.core.spec import Json
from hubbub.protocols.release import MAIN, Release
from hubbub.service.store.base import ReleaseRow

__all__ = ["alike", "row_of", "same", "shown"]

CLOSE = 1e-9
"""Another version of numpy may add up in another order: a replay must reproduce a release this closely."""


def row_of(
    release: Release, *, collection: str, question: str, time: float, minimum_batch: int, number: int = 0
) -> ReleaseRow:
    """A release as it is stored: its main estimate whole, with the reason if it rests on too few reports to be shown.

    Of the other estimates, those that rest on too few reports are stored without their numbers.

    Example:
        >>> from hubbub import Estimate
        >>> from hubbub.protocols.release import MAIN
        >>> made = Release(step=7, estimates={MAIN: Estimate([0.5], [0.01], 10)}, published=True, spent=0.5, n=10.0)
        >>> row = row_of(made, collection="0" * 32, question="q", time=0.0, minimum_batch=20)
        >>> row.withheld
        '10 reports; at least 20 are needed'
    """

    def few(estimate: Estimate) -> str | None:
        n = f"{estimate.n:,} reports; at least {minimum_batch:,} are needed"
        return n if estimate.n < minimum_batch else None

    main, *others = release.estimates or (MAIN,)
    payload: dict[str, Json] = {
        "published": release.published,
        "spent": _finite(release.spent),
        "population": _finite(release.n),
        **_payload(release.estimate),
    }
    if release.lost is not None:
        bias: list[Json] = [_finite(one) for one in release.lost.bias]
        payload["lost"] = {"due": release.lost.due, "came": release.lost.came, "bias": bias}
    if release.stopped is not None:
        payload["stopped"] = release.stopped
    if main != MAIN or others:
        named: dict[str, Json] = {main: {}}  # which is above
        for name in others:
            estimate = release.estimates[name]
            told, withheld = _payload(estimate), few(estimate)
            if withheld is not None:
                told = {**told, "value": None, "variance": None, "withheld": withheld}
                for hidden in _OF_SOME:
                    told.pop(hidden, None)
            named[name] = told
        payload["estimates"] = named
    withheld = None if release.stopped is not None and not release.estimates else few(release.estimate)
    text = json.dumps(payload, allow_nan=False)
    return ReleaseRow(collection, question, release.step, time, text, withheld, number)


def _payload(estimate: Estimate) -> dict[str, Json]:
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


def same(a: ReleaseRow, b: ReleaseRow) -> bool:
    """Whether two rows tell the same, but for when it was told.

    Example:
        >>> row = ReleaseRow("0" * 32, "q", 7, 0.0, '{"n": 10, "value": [0.5]}', None)
        >>> same(row, row._replace(time=9.0)), same(row, row._replace(payload='{"n": 10, "value": [0.6]}'))
        (True, False)
    """
    mine, theirs = json.loads(a.payload), json.loads(b.payload)
    return (
        (a[:3], a.withheld) == (b[:3], b.withheld)
        and mine.keys() == theirs.keys()
        and all(alike(mine[key], theirs[key]) for key in mine)
    )


def shown(row: ReleaseRow, *, level: float = 0.95) -> dict[str, Json]:
    """A release as it is shown: with its intervals, or why it is withheld. A number that is not known is null.

    The main estimate is at the top, and all of them, by name, in "estimates". Where a value has no interval, because
    its step heard nothing, "interval" says "unknown", and `low` and `high` are null.

    Example:
        >>> row = ReleaseRow("0" * 32, "q", 7, 0.0, '{"n": 10, "value": [0.5], "variance": [0.01]}', None)
        >>> [round(x, 3) for x in shown(row)["high"]], list(shown(row)["estimates"])
        ([0.696], ['estimate'])
    """
    if not 0 < level < 1:
        raise InvalidValue("level", level, "a probability between 0 and 1")
    payload: dict[str, Any] = json.loads(row.payload)
    head: dict[str, Json] = {"question": row.question, "step": row.step, "time": row.time, "withheld": row.withheld}
    name, *others = named = payload.pop("estimates", {MAIN: {}})
    main = _intervals({**payload, "withheld": row.withheld}, level)
    estimates: dict[str, Json] = {name: {key: main[key] for key in _OF_ESTIMATE if key in main}}
    for other in others:
        estimates[other] = _intervals({"withheld": None, **named[other]}, level)
    stopped = payload.get("stopped")
    return {**head, **main, "level": level, "stopped": stopped, "number": row.number, "estimates": estimates}


_OF_SOME = ("centre", "cut", "ratio")
"""What some estimates have beside their values, and what would tell them."""
_OF_ESTIMATE = (
    *("n", "bias", "kind", "labels", "value", "variance", "centre", "cut", "ratio"),
    *("low", "high", "interval", "withheld"),
)


def _intervals(told: dict[str, Any], level: float) -> dict[str, Json]:
    """An estimate with names for its values and the ends of their intervals; with neither, if it is withheld.

    The names of a ranking are what was found: they would tell the answer.
    """
    if told["withheld"] is not None:
        kept = {key: told[key] for key in told if key not in _OF_SOME}
        nothing = dict.fromkeys(("value", "variance", "low", "high"))
        return {**kept, "labels": [], **nothing, "interval": "unknown"}
    labels = told.get("labels") or [str(code) for code in range(len(told["value"] or ()))]
    value, variance = (np.array(told[name], dtype=np.float64) for name in ("value", "variance"))  # null becomes NaN
    low, high = told_estimate(told, value, np.maximum(variance, 0.0)).interval(level)
    unknown = bool((np.isfinite(value) & ~(np.isfinite(low) & np.isfinite(high))).any())
    interval = "unknown" if unknown else "known"
    return {**told, "labels": labels, "low": _list(low), "high": _list(high), "interval": interval}


def told_estimate(told: Mapping[str, Any], value: NDArray[np.float64], variance: NDArray[np.float64]) -> Estimate:
    """The estimate that is stored, as far as its intervals need it.

    Example:
        >>> low, _ = told_estimate({"cut": 0.0}, np.array([0.5]), np.array([0.01])).interval()
        >>> bool(low[0] < 0.304)
        True
    """
    if "ratio" in told:
        return Ratios.from_parts(told["ratio"], value, variance)
    if "cut" not in told:
        return Estimate(value, variance, 0, centre=told.get("centre"))
    cut = -math.inf if told["cut"] is None else told["cut"]
    return Selected(value, variance, 0, centre=told.get("centre"), cut=cut)


def _list(numbers: NDArray[np.float64]) -> list[Json]:
    plain: list[Json] = numbers.tolist()
    return plain if np.isfinite(numbers).all() else [_finite(number) for number in numbers.tolist()]


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def alike(a: Any, b: Any) -> bool:
    """Whether two JSON values are the same, but for the last digits of their numbers.

    Example:
        >>> alike({"x": [1.0, None]}, {"x": [1.0 + 1e-12, None]}), alike([1.0], [1.1])
        (True, False)
    """
    if a == b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    try:
        mine, theirs = np.array(a, dtype=np.float64), np.array(b, dtype=np.float64)  # null becomes NaN
    except (TypeError, ValueError):
        both = isinstance(a, list) and isinstance(b, list) and len(a) == len(b)
        return both and all(alike(mine, theirs) for mine, theirs in zip(a, b, strict=True))
    return mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=CLOSE, atol=CLOSE, equal_nan=True)
