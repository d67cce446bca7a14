"""The formats of signed documents: one of an older format is read as what it would be today.

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
"""Makes a document of one format one of the next; the number is changed for it."""


@dataclass(frozen=True)
class DocumentFormat(Versions[Upgrade]):
    """The formats of one kind of document; a document without a number is of the first.

    Example:
        >>> def named(document):
        ...     return {**document, "title": document["title"] or "untitled"}
        >>> DocumentFormat("collection", 2, {1: named}).upgrade({"format": 1, "title": ""})
        {'format': 2, 'title': 'untitled'}
        >>> DocumentFormat("collection", 2, {1: named}).upgrade({"format": 3})
        Traceback (most recent call last):
            ...
        hubbub.core.migrations.UnknownFormat: collection: got 'format 3'; allowed: at most format 2, ...
    """

    def upgrade(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The document in the present format; what was given is not changed."""
        if not isinstance(document, Mapping):
            raise InvalidValue(self.name, document, "an object")
        made = deepcopy(dict(document))
        for number, step in enumerate(self.since(made.get("format", 1)), start=made.get("format", 1) + 1):
            try:
                made = {**step(made), "format": number}
            except (LookupError, TypeError, AttributeError) as error:  # it is not what its number says
                raise InvalidValue(self.name, document, f"a document of format {number - 1} ({error!r})") from None
        return made


COLLECTION = DocumentFormat("collection", 3, {1: dict, 2: dict})
"""Collections, as they are signed and stored. Format 1 had no terms and no promises, format 2 terms of one view and one
field: they are compiled from the questions, as those of today are."""


def _named(document: dict[str, Any]) -> dict[str, Any]:
    asks = [{**each, "step": each["ask"]["step"], "closes": document["closes"]} for each in document["asks"]]
    return {**document, "asks": asks}


ASKS = DocumentFormat("asks", 3, {2: _named})
"""The asks of a moment. Format 1 named no rounds, and is over: a device fetches anew. Format 2 had no steps in the
names of asks, and one time at which all of them close."""
