"""The JSON body of a request with an SQL query."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from hubbub.core.confidence import check_level
from hubbub.core.errors import InvalidValue
from hubbub.service.problems import Problem

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
