"""Reading a collection from its TOML file."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hubbub.authoring import rewrite
from hubbub.authoring.check import refuse_unsafe
from hubbub.authoring.table import Table
from hubbub.collection.duration import seconds_of
from hubbub.collection.locate import at
from hubbub.collection.question import QuestionSpec
from hubbub.collection.spec import Collection
from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Sets, Strings
from hubbub.core.errors import InvalidValue
from hubbub.core.keyvalue import KeyValue
from hubbub.privacy.budget import Budget
from hubbub.protocols.cohort import CIRCLE

__all__ = ["EXAMPLE", "load_collection", "read_collection"]

EXAMPLE = """
name = "themes"
version = 1
title = "Light or dark?"

[schedule]
step = "1h"
lateness = "10m"

[privacy]
event = 1.0

[fields.theme]
kind = "categorical"
names = ["light", "dark"]

[questions.popular]
kind = "histogram"
field = "theme"
epsilon = 1.0
"""
"""The smallest collection there is."""

_KINDS: dict[str, tuple[type[Domain], dict[str, type]]] = {
    "categorical": (Categorical, {"names": list}),
    "ordinal": (Ordinal, {"size": int}),
    "numeric": (Numeric, {"low": float, "high": float, "cells": int}),
    "strings": (Strings, {"longest": int}),
    "keyvalue": (KeyValue, {"keys": list, "low": float, "high": float, "most": int}),
}


def load_collection(source: str | Path) -> Collection:
    """Read a collection, from a path or from text (which has more than one line), and refuse an unsafe one.

    Example:
        >>> load_collection(EXAMPLE).questions["popular"].epsilon
        1.0
        >>> load_collection(EXAMPLE.replace("epsilon = 1.0", "epsilon = -1"))
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: questions.popular.epsilon: got -1.0; allowed: a finite number above 0
    """
    return refuse_unsafe(read_collection(source))


def read_collection(source: str | Path) -> Collection:
    """Read a collection that may be unsafe, to find out what is wrong with it.

    Example:
        >>> read_collection(EXAMPLE).step_seconds
        3600
    """
    text = source if isinstance(source, str) and "\n" in source else Path(source).read_text(encoding="utf-8")
    name = "collection" if text is source else str(source)
    try:
        file = Table(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue(name, "text that is not TOML", str(error)) from None
    rewrite.TOML.refuse_outdated(text, file.raw("format", 1), name)
    schedule, privacy = file.table("schedule"), file.table("privacy")
    given: dict[str, Any] = {
        "name": file.take("name", str),
        "version": file.take("version", int),
        "title": file.take("title", str),
        "trust": file.take("trust", str, "local"),
        "step_seconds": _duration(schedule, "step"),
        "lateness_seconds": _duration(schedule, "lateness"),
        "origin": _origin(schedule),
        "retention_days": _days(schedule),
        "minimum_batch": privacy.take("minimum_batch", int, 100),
        "minimum_arc": _arc(privacy),
        "cover": privacy.raw("cover", False),
        "budget": _budget(privacy),
        "fields": {name: _field(table) for name, table in file.tables("fields")},
        "questions": {name: _question(table) for name, table in file.tables("questions")},
        "overrides": file.table("override", optional=True).rest(),
    }
    for table in (schedule, privacy, file):
        table.finish()
    return _located(given)


_PLACES = {
    "step_seconds": "schedule.step",
    "lateness_seconds": "schedule.lateness",
    "origin": "schedule.origin",
    "retention_days": "schedule.retention",
    "minimum_batch": "privacy.minimum_batch",
    "minimum_arc": "privacy.minimum_arc",
    "cover": "privacy.cover",
}


def _located(given: dict[str, Any]) -> Collection:
    """The collection; what it refuses is named as it is in the file."""
    try:
        return Collection(**given)
    except InvalidValue as error:
        where = _PLACES.get(error.field, error.field).replace("overrides.", "override.", 1)
        raise InvalidValue(where, error.value, error.allowed) from None


def _duration(table: Table, key: str) -> int:
    return seconds_of(table.at(key), table.take(key, str))


def _days(schedule: Table) -> int:
    text = schedule.take("retention", str, "90d")
    days, rest = divmod(seconds_of(schedule.at("retention"), text), 86400)
    if rest or not days:
        raise InvalidValue(schedule.at("retention"), text, 'whole days, such as "90d"')
    return days


def _origin(schedule: Table) -> int:
    value = schedule.raw("origin", 0)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidValue(schedule.at("origin"), str(value), "a time with its zone, such as 2025-01-01T00:00:00Z")
        seconds = (value - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
        value = int(seconds) if seconds == int(seconds) else seconds
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValue(schedule.at("origin"), value, "a time such as 2025-01-01T00:00:00Z, or whole Unix seconds")
    return value


def _arc(privacy: Table) -> int:
    share = privacy.take("minimum_arc", float, 0.001)
    if not 1 / CIRCLE <= share <= 1:
        raise InvalidValue(privacy.at("minimum_arc"), share, "a part of the devices, above 0 and at most 1")
    return int(share * CIRCLE)


def _budget(privacy: Table) -> Budget:
    limits: dict[str, Any] = {}
    for key in ("event", "user"):
        limit = privacy.take(key, float, None)
        if limit is not None:
            limits[key] = limit
    if privacy.take("window", dict, None) is not None:
        window = privacy.table("window")
        limits["window"] = (window.take("epsilon", float), window.take("steps", int))
        window.finish()
    if not limits:
        raise InvalidValue(privacy.place, "no limit", "at least one of event, window and user")
    renamed = {"window limit": "window.epsilon", "window steps": "window.steps"}
    with at(privacy.place, **renamed):
        return Budget.of(**limits)


def _field(table: Table) -> Domain:
    kind = table.take("kind", str)
    if kind == "sets":
        build: type[Domain] = Sets
        given: dict[str, Any] = {"items": _field(table.table("items")), "most": table.take("most", int)}
    elif kind in _KINDS:
        build, keys = _KINDS[kind]
        given = {key: table.take(key, wanted) for key, wanted in keys.items()}
    else:
        raise InvalidValue(table.at("kind"), kind, f"one of {', '.join(_KINDS)}, sets")
    table.finish()
    with at(table.place, domain="names" if kind == "categorical" else "size"):
        return build(**given)


def _question(table: Table) -> QuestionSpec:
    given: dict[str, Any] = {
        "kind": table.take("kind", str),
        "field": table.take("field", str),
        "epsilon": table.take("epsilon", float),
        "title": table.take("title", str, ""),
        "method": table.take("method", str, None),
        "w": table.take("w", int, None),
        "permanent": table.take("permanent", float, None),
        "steps": table.take("steps", int, None),
        "changes": table.take("changes", int, None),
        "mechanism": table.take("mechanism", str, None),
        "of": table.take("of", str, None),
        "sparsity": table.take("sparsity", int, None),
        "candidates": table.take("candidates", list, []),
        "keep_reports": table.take("keep_reports", bool, False),
    }
    table.finish()
    with at(table.place):
        return QuestionSpec(**given)
