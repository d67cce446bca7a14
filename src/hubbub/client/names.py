"""Names: of the collection where a program does not say, and of what a device keeps for life."""

from __future__ import annotations

import json
from typing import Any

from hubbub.client.transport import Transport, Unreachable
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import Mechanism

__all__ = ["STREAM", "memo_account", "only_collection", "stream_name"]

STREAM = "stream:"
"""How the names of streams begin, in the ledger and in the store."""

_PATH = "/v1/collections"


def only_collection(transport: Transport) -> str:
    """The name of the only collection that a server has.

    Example:
        >>> from hubbub.client.transport import Response
        >>> class Fixed:
        ...     def request(self, method, path, headers, body=None):
        ...         return Response(200, {}, b'{"collections": [{"name": "themes", "version": 1}]}')
        >>> only_collection(Fixed())
        'themes'
    """
    response = transport.request("GET", _PATH, {"Accept": "application/json"})
    try:
        found: Any = json.loads(response.body)
        names = [str(one["name"]) for one in found["collections"]]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise Unreachable(f"GET {_PATH}: status {response.status}, {error!r}") from error
    if len(names) != 1:
        raise InvalidValue("collection", None, f"one of {', '.join(names[:20])}" if names else "a collection's name")
    return names[0]


def memo_account(field: str, mechanism: Mechanism) -> str:
    """Under which a device keeps its memos of a field: shared by two fields, they would tell if their values are equal.

    Example:
        >>> from hubbub import BasicRappor
        >>> rappor = BasicRappor(epsilon=2.0, domain=4)
        >>> memo_account("home", rappor) == memo_account("work", rappor)
        False
    """
    return f"{field}:{mechanism.spec_id}:"


def stream_name(question: str, horizon: int | None = None) -> str:
    """Under which a device keeps what it tells of a question of changes over a horizon; or how all of them begin.

    Example:
        >>> stream_name("places", 3)
        'stream:places:3'
    """
    return f"{STREAM}{question}:{'' if horizon is None else horizon}"
