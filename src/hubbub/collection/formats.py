"""The formats of signed documents: a document of an older format is upgraded to the present one.

A document is checked as it was signed, byte for byte, and only then upgraded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

from hubbub.core.errors import InvalidValue
from hubbub.core.migrations import Versions

Upgrade: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Upgrades a document to the next format, with its number."""


@dataclass(frozen=True)
class DocumentFormat(Versions[Upgrade]):
    """The formats of one kind of document."""

    def upgrade(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of the document in the present format."""
        if not isinstance(document, Mapping):
            raise InvalidValue(self.name, document, "an object")
        upgraded = deepcopy(dict(document))
        for step in self.since(upgraded.get("format")):
            upgraded = step(upgraded)
        return upgraded


COLLECTION = DocumentFormat("collection", 1)
"""Collections, as they are signed and stored."""
ASKS = DocumentFormat("asks", 1)
"""Documents of asks."""
