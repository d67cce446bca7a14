"""What a change of who shuffles breaks."""

from __future__ import annotations

from collections.abc import Iterator

from hubbub.collection.document import Collection
from hubbub.collection.finding import Finding
from hubbub.collection.shuffle_route import weaker_route

_AGREED = "people agreed to that; less of it is a new collection, under a new name"


def route_changes(new: Collection, old: Collection) -> Iterator[Finding]:
    """What becomes of shuffled reports when `new` takes the place of `old`.

    Fewer shufflers, smaller batches, fewer fakes and a larger delta all make the central guarantee weaker than what
    people were told.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, read_collection
        >>> list(route_changes(read_collection(EXAMPLE), read_collection(EXAMPLE)))
        []
    """
    was, now = old.shuffle, new.shuffle
    if was == now:
        return
    if was is None:
        yield Finding("note", "trust", "reports now pass shufflers, and devices send to the first of them")
        return
    for field, text in weaker_route(now, was):
        yield Finding("error", field, f"{text}: {_AGREED}")
    if now is None:
        return
    text = "reports for the older version that still wait at a shuffler are dropped there, and never opened"
    yield Finding("note", "shuffle", text)
