"""Taking examples of several kinds in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def in_turn(kinds: Sequence[Iterator[Item]], most: int) -> list[Item]:
    """At most so many items, one of each kind in turn; a kind that has no more is passed over."""
    items: list[Item] = []
    while kinds and len(items) < most:
        rest = []
        for kind in kinds:
            for item in kind:
                items.append(item)
                rest.append(kind)
                break
        kinds = rest
    return items[:most]
