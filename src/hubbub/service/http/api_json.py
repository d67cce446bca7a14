"""Shuffled batches as the API shows them: their sizes, and what each coalition of parties can learn from them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from hubbub.authoring.promise import coalitions, coalitions_of
from hubbub.collection import Collection
from hubbub.core.errors import InvalidValue
from hubbub.core.noise import check_level
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.service.http.problems import Problem
from hubbub.service.store.sql import Store

MOST_BATCHES = 20
"""The most batches of a question that are shown."""


def shuffled_json(store: Store, collection: Collection) -> dict[str, Json]:
    """For each question: its latest batches, and the epsilons of all coalitions for the latest and the smallest batch.

    Example:
        >>> from hubbub.service.collector.example import example_collector
        >>> collector = example_collector()
        >>> shuffled_json(collector.store, collector.collections["themes"])
        {'route': None, 'questions': {}}
    """
    route = collection.shuffle
    if route is None:
        return {"route": None, "questions": {}}
    questions: dict[str, Json] = {}
    for name in collection.questions:
        rows = store.shuffled_batches(collection.collection_id, name, MOST_BATCHES)
        batches: list[Json] = []
        for ask, row in rows:
            batches.append(
                {
                    "step": ask.step,
                    "round": ask.round,
                    "part": ask.part,
                    "people": row.n - row.fakes,
                    "fakes": row.fakes,
                    "unreadable": row.unreadable,
                    "repeated": row.repeated,
                    "checks": row.checks,
                    "lost_checks": row.lost,
                }
            )
        latest: list[Json] = []
        if rows:
            ask, row = rows[0]
            mechanism = Ask.from_spec(json.loads(ask.spec)).mechanism
            assert isinstance(mechanism, Mechanism)  # shuffled collections ask no stateful mechanism
            latest = [coalition.to_dict() for coalition in coalitions(mechanism, route, row.n - row.fakes)]
        smallest: list[Json] = [coalition.to_dict() for coalition in coalitions_of(collection, name)]
        questions[name] = {"smallest": smallest, "latest": latest, "batches": batches}
    return {"route": route.spec(), "questions": questions}


MOST_BODY = 64 << 10


class SqlRequest(NamedTuple):
    """A query, its first and last step (by default the latest), the level of intervals, and whether to explain it."""

    sql: str
    first: int | None = None
    last: int | None = None
    level: float = 0.95
    explain: bool = False


def read_query(body: bytes) -> SqlRequest:
    """Read the JSON of a request. Unknown keys and invalid values are refused by name.

    Example:
        >>> read_query(b'{"sql": "SELECT COUNT(*) FROM people", "from": 7}').first
        7
        >>> read_query(b'{"sql": 3}')
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: sql: got 3; allowed: a query
    """
    try:
        fields: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, "malformed", f"the body is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise Problem(400, "malformed", "the body is an object with a query, sql")
    for key in sorted(set(fields) - {"sql", "from", "to", "level", "explain"}):
        raise InvalidValue(key, fields[key], "nothing: sql, from, to, level and explain")
    sql, level, explain = fields.get("sql"), fields.get("level", 0.95), fields.get("explain", False)
    if not isinstance(sql, str) or not sql.strip():
        raise InvalidValue("sql", sql, "a query")
    if not isinstance(explain, bool):
        raise InvalidValue("explain", explain, "true or false")
    first, last = (_step(name, fields.get(name)) for name in ("from", "to"))
    return SqlRequest(sql, first, last, check_level(level), explain)


def _step(name: str, value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62):
        raise InvalidValue(name, value, "a step")
    return value
