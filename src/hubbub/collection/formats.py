"""The formats of signed documents: a document of an older format is upgraded to the present one.

A document is checked as it was signed, byte for byte, and only then upgraded. Its id stays that of what was signed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

from hubbub.core.errors import InvalidValue
from hubbub.core.migrations import Versions

Upgrade: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Upgrades a document to the next format; the caller changes the number."""


@dataclass(frozen=True)
class DocumentFormat(Versions[Upgrade]):
    """The formats of one kind of document; a document without a number has format 1."""

    def upgrade(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of the document in the present format."""
        if not isinstance(document, Mapping):
            raise InvalidValue(self.name, document, "an object")
        upgraded = deepcopy(dict(document))
        first = upgraded.get("format", 1)
        for number, step in enumerate(self.since(first), start=first + 1):
            try:
                upgraded = {**step(upgraded), "format": number}
            except (LookupError, TypeError, AttributeError) as error:  # it is not what its number says
                raise InvalidValue(self.name, document, f"a document of format {number - 1} ({error!r})") from None
        return upgraded


COLLECTION = DocumentFormat("collection", 3, {1: dict, 2: dict})
"""Collections, as they are signed and stored. Format 1 had no terms and no promises, and the terms of format 2 had one
view and one field. Both are compiled from the questions instead, as in the present format."""


def _with_steps(document: dict[str, Any]) -> dict[str, Any]:
    asks = [{**ask, "step": ask["ask"]["step"], "closes": document["closes"]} for ask in document["asks"]]
    return {**document, "asks": asks}


ASKS = DocumentFormat("asks", 3, {2: _with_steps})
"""Documents of asks. Format 1 had no rounds and is no longer read: a device fetches the asks again. Format 2 had no
steps in the names of asks, and one closing time for all."""
