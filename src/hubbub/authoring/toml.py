"""Reading a collection from its TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from hubbub.alarms.plan import AlarmPlan
from hubbub.authoring.check import refuse_unsafe
from hubbub.collection.shuffle_route import ROUTES, Route, ShuffleRoute
from hubbub.collection.time import seconds_of
from hubbub.core.domain import DOMAINS, Domain
from hubbub.core.errors import InvalidValue, at
from hubbub.core.migrations import Versions
from hubbub.ledger.promise import Budget
from hubbub.protocols.ask import CIRCLE
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.questions.keys import NOTHING

FORMAT = Versions[Any]("format", 1)
"""The version of collection files; a file need not state it."""
_MISSING: Any = object()
_WORDS = {bool: "true or false", str: "text", int: "a whole number", float: "a number", dict: "a table", list: "a list"}


class TomlTable:
    """Reads keys one by one, and refuses what nobody read."""

    def __init__(self, given: Mapping[str, Any], place: str = "") -> None:
        self._given = given
        self._read: set[str] = set()
        self.place = place

    def at(self, key: str) -> str:
        """The place of a key."""
        return f"{self.place}.{key}" if self.place else key

    def take(self, key: str, kind: type, default: Any = _MISSING) -> Any:
        """The value of a key, of this kind; a whole number is a number too."""
        self._read.add(key)
        if key not in self._given:
            if default is not _MISSING:
                return default
            close = get_close_matches(key, [name for name in self._given if name not in self._read], n=1)
            hint = f" (is {close[0]} meant for it?)" if close else ""
            raise InvalidValue(self.at(key), NOTHING, _WORDS[kind] + hint)
        value: Any = self._given[key]
        if kind is float and type(value) is int:
            value = float(value)
        if isinstance(value, bool) != (kind is bool) or not isinstance(value, kind):
            raise InvalidValue(self.at(key), value, _WORDS[kind])
        return value

    def __contains__(self, key: str) -> bool:
        return key in self._given

    def raw(self, key: str, default: Any) -> Any:
        """The value of a key, of whatever kind."""
        self._read.add(key)
        return self._given.get(key, default)

    def table(self, key: str, *, optional: bool = False) -> TomlTable:
        return TomlTable(self.take(key, dict, {} if optional else _MISSING), self.at(key))

    def tables(self, key: str) -> Iterator[tuple[str, TomlTable]]:
        """The tables in the table of a key, by name."""
        outer = self.table(key)
        for name in outer._given:
            yield name, outer.table(name)

    def rest(self) -> dict[str, Any]:
        """What was not read yet; read with this."""
        left = {key: value for key, value in self._given.items() if key not in self._read}
        self._read.update(left)
        return left

    def finish(self) -> None:
        """Refuse keys that nobody read."""
        for key, value in self._given.items():
            if key not in self._read:
                close = get_close_matches(key, self._read, n=1)
                hint = f" (did you mean {close[0]}?)" if close else ""
                raise InvalidValue(self.at(key), value, f"nothing: there is no such key here{hint}")


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


def load_collection(source: str | Path) -> Collection:
    """Read a collection, from a path or from text (which has more than one line), and refuse an unsafe one."""
    return refuse_unsafe(read_collection(source))


def read_collection(source: str | Path) -> Collection:
    """Read a collection that may be unsafe, to find out what is wrong with it."""
    return _read(source)[0]


def load_alarms(source: str | Path) -> AlarmPlan:
    r"""Read the alarms of a collection's file: they are the collector's, and no part of what is signed."""
    return _read(source)[1]


def _read(source: str | Path) -> tuple[Collection, AlarmPlan]:
    text = source if isinstance(source, str) and "\n" in source else Path(source).read_text(encoding="utf-8")
    name = "collection" if text is source else str(source)
    try:
        file = TomlTable(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue(name, "text that is not TOML", f"a collection in TOML ({error})") from None
    FORMAT.check(file.raw("format", 1))
    schedule, privacy = file.table("schedule"), file.table("privacy")
    population = file.table("population", optional=True)
    given: dict[str, Any] = {
        "name": file.take("name", str),
        "version": file.take("version", int),
        "title": file.take("title", str),
        "trust": file.take("trust", str, "local"),
        "shuffle": _route(file),
        "step_seconds": _duration(schedule, "step"),
        "lateness_seconds": _duration(schedule, "lateness"),
        "origin": _origin(schedule),
        "retention_days": _days(schedule),
        "minimum_batch": privacy.take("minimum_batch", int, 100),
        "minimum_arc": _arc(privacy),
        "planned_devices": privacy.take("planned_devices", int, None),
        "cover": privacy.raw("cover", False),
        "budget": _budget(privacy),
        "fields": {name: _field(table) for name, table in file.tables("fields")},
        "questions": {name: _question(table) for name, table in file.tables("questions")},
        "overrides": file.table("override", optional=True).rest(),
        "divide": population.take("divide", bool, False),
    }
    alarms = AlarmPlan.from_spec(file.table("alarms", optional=True).rest())
    for table in (schedule, privacy, population, file):
        table.finish()
    collection = _located(given)
    alarms.watches(collection)
    return collection, alarms


_PLACES = {
    "step_seconds": "schedule.step",
    "lateness_seconds": "schedule.lateness",
    "origin": "schedule.origin",
    "retention_days": "schedule.retention",
    "minimum_batch": "privacy.minimum_batch",
    "minimum_arc": "privacy.minimum_arc",
    "planned_devices": "privacy.planned_devices",
    "cover": "privacy.cover",
}


def _located(given: dict[str, Any]) -> Collection:
    """The collection; what it refuses is named as it is in the file."""
    try:
        return Collection(**given)
    except InvalidValue as error:
        where = _PLACES.get(error.field, error.field).replace("overrides.", "override.", 1)
        raise InvalidValue(where, error.value, error.allowed) from None


def _route(file: TomlTable) -> Route | None:
    """The table [shuffle]: who shuffles."""
    if file.take("shuffle", dict, None) is None:
        return None
    route = ROUTES.get(file.take("trust", str, "local"), ShuffleRoute)
    spec = {"fakes": 0, **file.table("shuffle").rest()}
    with at("shuffle"):
        return route.from_spec(spec)


def _duration(table: TomlTable, key: str) -> int:
    return seconds_of(table.at(key), table.take(key, str))


def _days(schedule: TomlTable) -> int:
    text = schedule.take("retention", str, "90d")
    days, rest = divmod(seconds_of(schedule.at("retention"), text), 86400)
    if rest or not days:
        raise InvalidValue(schedule.at("retention"), text, 'whole days, such as "90d"')
    return days


def _origin(schedule: TomlTable) -> int:
    value = schedule.raw("origin", 0)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidValue(schedule.at("origin"), str(value), "a time with its zone, such as 2025-01-01T00:00:00Z")
        seconds = (value - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
        value = int(seconds) if seconds == int(seconds) else seconds
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValue(schedule.at("origin"), value, "a time such as 2025-01-01T00:00:00Z, or whole Unix seconds")
    return value


def _arc(privacy: TomlTable) -> int:
    share = privacy.take("minimum_arc", float, 0.001)
    if not 1 / CIRCLE <= share <= 1:
        raise InvalidValue(privacy.at("minimum_arc"), share, "a part of the devices, above 0 and at most 1")
    return int(share * CIRCLE)


def _budget(privacy: TomlTable) -> Budget:
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


def _field(table: TomlTable) -> Domain:
    """A field: its keys are those of the domain's class."""
    kind = table.take("kind", str)
    if kind not in DOMAINS:
        raise InvalidValue(table.at("kind"), kind, f"one of {', '.join(sorted(DOMAINS))}")
    build = DOMAINS[kind]
    values = {part.name: _value(table, part.name, get_type_hints(build)[part.name]) for part in fields(build)}  # type: ignore[arg-type]
    table.finish()
    with at(table.place, domain="names" if "names" in values else "size"):
        return build(**values)


def _value(table: TomlTable, key: str, hint: Any) -> Any:
    if hint is Domain:
        return _field(table.table(key))
    return table.take(key, list if get_origin(hint) is tuple else hint)


def _question(table: TomlTable) -> Question:
    kind = table.take("kind", str)
    keys = {key: value.isoformat() if isinstance(value, datetime) else value for key, value in table.rest().items()}
    with at(table.place):
        return Question.make(kind, **keys)
