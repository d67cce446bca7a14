"""What a change of who shuffles breaks."""

from __future__ import annotations

from collections.abc import Iterator

from hubbub.collection.document import Collection
from hubbub.collection.finding import Finding

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
    if now is None:
        yield Finding("error", "trust", f"reports passed shufflers, and no longer do: {_AGREED}")
        return
    if len(now.shufflers) < len(was.shufflers):
        yield Finding("error", "shuffle.shufflers", f"{len(was.shufflers)} became {len(now.shufflers)}: {_AGREED}")
    for name, less in (("least", now.least < was.least), ("fakes", now.fakes < was.fakes)):
        if less:
            yield Finding(
                "error", f"shuffle.{name}", f"{getattr(was, name):,} became {getattr(now, name):,}: {_AGREED}"
            )
    if now.delta > was.delta:
        yield Finding("error", "shuffle.delta", f"{was.delta:g} became {now.delta:g}: {_AGREED}")
    text = "reports for the older version that still wait at a shuffler are dropped there, and never opened"
    yield Finding("note", "shuffle", text)
