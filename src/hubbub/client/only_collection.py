"""Finding the collection of a server that has only one, where the program gives no name."""

from __future__ import annotations

import json
from typing import Any

from hubbub.client.transport import Transport, Unreachable
from hubbub.core.errors import InvalidValue

_PATH = "/v1/collections"


def only_collection(transport: Transport) -> str:
    """The name of the only collection that a server has."""
    response = transport.request("GET", _PATH, {"Accept": "application/json"})
    try:
        body: Any = json.loads(response.body)
        names = [str(collection["name"]) for collection in body["collections"]]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise Unreachable(f"GET {_PATH}: status {response.status}, {error!r}") from error
    if len(names) != 1:
        raise InvalidValue("collection", None, f"one of {', '.join(names[:20])}" if names else "a collection's name")
    return names[0]
