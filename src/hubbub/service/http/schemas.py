"""The JSON schemas of what the routes take and answer."""

from __future__ import annotations

from typing import Any, get_args

from hubbub.core.estimate import Bias
from hubbub.questions.base import Form
from hubbub.service.base.limits import REASONS

_HEX = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_SLUG = {"type": "string", "pattern": "^[a-z][a-z0-9_-]{0,63}$"}
_NUMBERS = {"type": ["array", "null"], "items": {"type": ["number", "null"]}}
_BASE64 = {
    "type": "string",
    "contentEncoding": "base64",
    "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}


def _object(optional: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    all_properties = {**properties, **(optional or {})}
    return {"type": "object", "properties": all_properties, "required": list(properties), "additionalProperties": False}


def _integer(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_LOST = {
    "lost": _object(
        due={"type": "integer", "minimum": 0},
        came={"type": "integer", "minimum": 0},
        bias=_list({"type": ["number", "null"]}),
    )
}
"""Only in releases of streams of changes."""

_ESTIMATE: dict[str, Any] = {
    "n": {"type": "integer"},
    "bias": {"enum": list(get_args(Bias))},
    "kind": {"enum": ["share", "quantity"]},
    "labels": _list({"type": "string"}),
    "value": _NUMBERS,
    "variance": _NUMBERS,
    "low": _NUMBERS,
    "high": _NUMBERS,
    "interval": {"enum": ["known", "unknown"]},
    "withheld": {"type": ["string", "null"]},
}

_PAIR = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_CENTRE = {
    "centre": _NUMBERS,
    "cut": {"type": ["number", "null"]},
    "ratio": _object(
        above=_list({"type": "number"}),
        below=_list({"type": "number"}),
        moments=_list(_list({"type": "number"})),
        pair=_PAIR,
        weights=_PAIR,
        bounds=_PAIR,
    ),
}
"""Keys of some estimates only. `centre`, for values smoothed over time or found by a search: the unbiased estimate that
the intervals are around. `cut`: what that estimate had to exceed for a value to be released. `ratio`, for numbers by
group: the two sums of each ratio, with the variance of the numerator, the covariance, and the variance of the
denominator."""

_SHAPE = _object(
    form={"enum": list(get_args(Form))},
    size={"type": "integer", "minimum": 1},
    unit={"type": "string"},
    low={"type": ["number", "null"]},
    high={"type": ["number", "null"]},
    over_time={"type": "boolean"},
    adds_up={"type": "boolean"},
    everyone={"type": "boolean"},
    window={"type": "integer", "minimum": 0},
    groups={"type": "object", "additionalProperties": _list({"type": "string"})},
    values=_list({"type": "string"}),
    columns={"type": "object", "additionalProperties": {"type": "string"}},
)
"""The shape of the answers to a question, which says how to draw them."""

_NUMBER = {"type": ["number", "null"]}
_WATCHED: dict[str, Any] = {
    **{key: {"type": "string"} for key in ("alarm", "category", "question", "title")},
    "threshold": _NUMBER,
    "baseline": _NUMBER,
}

_COALITIONS = _list(
    _object(who={"type": "string"}, epsilon={"type": "number"}, delta={"type": "number"}, left={"type": "string"})
)

SCHEMAS: dict[str, Any] = {
    "Problem": {
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
        },
        "required": ["type", "title", "status"],
    },
    "Sealed": _object(payload={"type": "string"}, key={"type": "string"}, signature={"type": "string"}),
    "Upload": {
        "type": "object",
        "properties": {
            "collection": _SLUG,
            "version": _integer(1, 1 << 31),
            "entries": _list(
                _object(
                    question=_SLUG,
                    run=_integer(0, (1 << 31) - 1),
                    step=_integer(0, (1 << 53) - 1),
                    round=_integer(1, (1 << 31) - 1),
                    part=_integer(0, (1 << 31) - 1),
                    id=_HEX,
                    report=_BASE64,
                )
            ),
            "pad": {"type": "string", "pattern": "^0*$"},
        },
        "required": ["collection", "version", "entries"],
        "additionalProperties": False,
    },
    "Receipt": _object(
        accepted={"type": "integer", "minimum": 0},
        duplicates={"type": "integer", "minimum": 0},
        rejected=_list(_object(id=_HEX, reason={"enum": list(REASONS)})),
    ),
    "ShuffledReceipt": _object(
        batch={"type": "string"},
        **{key: {"type": "integer", "minimum": 0} for key in ("accepted", "fakes", "unreadable", "repeated")},
    ),
    "Collections": _object(
        collections=_list(
            _object(name={"type": "string"}, version={"type": "integer"}, title={"type": "string"}, collection_id=_HEX)
        )
    ),
    "Release": _object(
        {**_LOST, **_CENTRE},
        question={"type": "string"},
        step={"type": "integer"},
        time={"type": "number"},
        published={"type": "boolean"},
        spent={"type": ["number", "null"]},
        population={"type": ["number", "null"]},
        **_ESTIMATE,
        level={"type": "number"},
        stopped={"type": ["string", "null"]},
        number={"type": "integer", "minimum": 0},
        version={"type": "integer", "minimum": 1},
        estimates={"type": "object", "additionalProperties": _object(_CENTRE, **_ESTIMATE)},
    ),
    "Releases": _object(
        question={"type": "string"},
        shape=_SHAPE,
        versions=_list({"type": "integer", "minimum": 1}),
        earlier=_list({"type": "integer", "minimum": 1}),
        releases=_list({"$ref": "#/components/schemas/Release"}),
    ),
    "Query": _object(
        {
            "from": {"type": ["integer", "null"]},
            "to": {"type": ["integer", "null"]},
            "level": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "explain": {"type": "boolean"},
        },
        sql={"type": "string"},
    ),
    "QueryAnswer": _object(
        question={"type": "string"},
        columns=_list(_object(name={"type": "string"}, estimate={"type": "boolean"}, how={"type": "string"})),
        rows=_list({"type": "array"}),
        level={"type": "number"},
        n={"type": "integer"},
        bias={"type": "string"},
        notes=_list({"type": "string"}),
        explain={"type": "string"},
    ),
    "Difference": _object(
        question={"type": "string"},
        step={"type": "integer"},
        **{key: {"type": "string"} for key in ("by", "of", "minus")},
        n={"type": "integer"},
        level={"type": "number"},
        withheld={"type": ["string", "null"]},
        labels=_list({"type": "string"}),
        value=_NUMBERS,
        low=_NUMBERS,
        high=_NUMBERS,
    ),
    "Candidates": _object(
        question={"type": "string"},
        first={"type": "integer"},
        last={"type": "integer"},
        n={"type": "integer"},
        bias={"enum": list(get_args(Bias))},
        labels=_list({"type": "string"}),
        value=_NUMBERS,
        variance=_NUMBERS,
        low=_NUMBERS,
        high=_NUMBERS,
        level={"type": "number"},
        withheld={"type": ["string", "null"]},
    ),
    "Counts": _object(
        outcomes={"type": "object", "additionalProperties": {"type": "integer"}},
        open=_list(
            _object(
                question={"type": "string"},
                step={"type": "integer"},
                reports={"type": "integer"},
                closes={"type": "number"},
            )
        ),
    ),
    "AlarmEvent": _object(
        **_WATCHED,
        number={"type": "integer", "minimum": 1},
        collection={"type": "string"},
        state={"enum": ["raised", "cleared"]},
        direction={"enum": ["above", "below"]},
        step={"type": "integer"},
        at={"type": "number"},
        since={"type": "integer"},
        value={"type": "number"},
        low={"type": "number"},
        high={"type": "number"},
    ),
    "Alarms": _object(
        false_alarms_a_day={"type": "number", "minimum": 0},
        guarantee={"type": ["string", "null"]},
        alarms=_list(
            _object(
                alarm={"type": "string"},
                definition={"type": "object"},
                false_alarms_a_day={"type": "number", "minimum": 0},
                guarantee={"type": "string"},
                delays={"type": "string"},
                watched=_list(
                    _object(
                        **_WATCHED,
                        state={"enum": ["learning", "quiet", "raised"]},
                        direction={"enum": ["above", "below", None]},
                        step={"type": ["integer", "null"]},
                        since={"type": ["integer", "null"]},
                        value=_NUMBER,
                        low=_NUMBER,
                        high=_NUMBER,
                        clears=_NUMBER,
                    )
                ),
            )
        ),
        events=_list({"$ref": "#/components/schemas/AlarmEvent"}),
        webhooks=_list(
            _object(
                webhook={"type": "string"},
                taken={"type": "integer", "minimum": 0},
                waiting={"type": "integer", "minimum": 0},
                failing={"type": ["string", "null"]},
            )
        ),
    ),
    "Shuffled": _object(
        route={"type": ["object", "null"]},
        questions={
            "type": "object",
            "additionalProperties": _object(
                smallest=_COALITIONS, latest=_COALITIONS, batches=_list({"type": "object"})
            ),
        },
    ),
    "SpotChecks": _object(answer={"type": "string"}, count=_integer(1, 1000)),
    "SpotCheckUploads": _object(uploads=_list({"type": "string"})),
    "Alive": _object(alive={"type": "boolean"}),
    "Ready": _object(
        {
            "clock": _object(
                {
                    "ahead_seconds": {"type": "integer"},
                    "going_by": {"type": "string"},
                    "wall": {"type": "string"},
                    "seconds_left": {"type": "integer"},
                },
                state={"enum": ["sure", "in doubt", "moved"]},
            )
        },
        ready={"type": "boolean"},
        not_ready={"type": "object", "additionalProperties": {"type": "string"}},
    ),
}
