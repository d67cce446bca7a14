"""The body of a request that asks a table by SQL."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request

from hubbub.core.errors import InvalidValue
from hubbub.service.problems import Problem

MOST_BODY = 64 << 10


class SqlRequest(NamedTuple):
    """A query, its steps (the latest unless given), the level of its intervals, and whether its plan is wanted too."""

    sql: str
    first: int | None = None
    last: int | None = None
    level: float = 0.95
    explain: bool = False


async def whole_body(request: Request, most: int) -> bytes:
    """The body of a request, if it is no longer than so many bytes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise Problem(413, "too_large", f"a request has at most {most:,} bytes")
    return bytes(body)


def read_query(body: bytes) -> SqlRequest:
    """Read the JSON of a request; whatever else is refused by its key.

    Example:
        >>> read_query(b'{"sql": "SELECT COUNT(*) FROM people", "from": 7}').first
        7
        >>> read_query(b'{"sql": 3}')
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: sql: got 3; allowed: a query
    """
    try:
        given: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, "malformed", f"the body is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise Problem(400, "malformed", "the body is an object with a query, sql")
    unknown = set(given) - {"sql", "from", "to", "level", "explain"}
    if unknown:
        raise InvalidValue(sorted(unknown)[0], given[sorted(unknown)[0]], "nothing: sql, from, to, level and explain")
    sql, level, explain = given.get("sql"), given.get("level", 0.95), given.get("explain", False)
    if not isinstance(sql, str) or not sql.strip():
        raise InvalidValue("sql", sql, "a query")
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InvalidValue("level", level, "a probability between 0 and 1")
    if not isinstance(explain, bool):
        raise InvalidValue("explain", explain, "true or false")
    first, last = (_step(name, given.get(name)) for name in ("from", "to"))
    return SqlRequest(sql, first, last, float(level), explain)


def _step(name: str, value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62):
        raise InvalidValue(name, value, "a step")
    return value
