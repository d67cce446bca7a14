"""The versions of collections: which ones are served, and which are outdated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from hubbub.collection import Collection
from hubbub.collection.weaker import AGREED, weaker_clauses
from hubbub.core.errors import InvalidValue
from hubbub.core.spec import canonical
from hubbub.questions import read_collection
from hubbub.service.store.base import CollectionRow
from hubbub.service.store.sql import Store


def as_served(collections: Sequence[Collection], store: Store) -> list[Collection]:
    """The collections to serve. A version that was served before, in an older format or hash, stays as it was signed.

    A version is one document for good, and devices know it by its id. A newer format begins with the next version.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> from hubbub.service.store import open_store
        >>> store = open_store("sqlite:///:memory:")
        >>> [collection.name for collection in as_served([load_collection(EXAMPLE)], store)]
        ['themes']
    """
    stored = {(row.name, row.version): row for row in store.collections()}
    served = []
    for collection in collections:
        row = stored.get((collection.name, collection.version))
        if row is not None and row.id != collection.collection_id:
            earlier = read_collection(json.loads(row.spec))
            collection = earlier if earlier == replace(collection, hash=earlier.hash) else collection
        served.append(collection)
    return served


def register(collections: Sequence[Collection], store: Store) -> tuple[list[CollectionRow], frozenset[str]]:
    """The rows of new versions to store, and the ids of the outdated versions.

    A version that was served must not change, and a later version must not promise people less: else `InvalidValue`.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> from hubbub.service.store import open_store
        >>> added, over = register([load_collection(EXAMPLE)], open_store("sqlite:///:memory:"))
        >>> [row.name for row in added], over
        (['themes'], frozenset())
    """
    names = [collection.name for collection in collections]
    if not names or len(set(names)) < len(names):
        raise InvalidValue("collections", names, "at least one, with different names")
    stored = store.collections()
    added, outdated = [], set()
    for collection in collections:
        known = {row.version: row for row in stored if row.name == collection.name}
        newest = max(known, default=0)
        same = known.get(collection.version)
        if collection.version < newest or (same is not None and same.id != collection.collection_id):
            raise InvalidValue(
                f"{collection.name}.version",
                collection.version,
                f"at least {newest + 1}: version {newest} was served, and a change is a new version",
            )
        if same is None:
            if newest:
                _refuse_weaker(collection, read_collection(json.loads(known[newest].spec)))
            spec = canonical(collection.spec())
            added.append(CollectionRow(collection.collection_id, collection.name, collection.version, spec))
        outdated |= {row.id for row in known.values()} - {collection.collection_id}
    return added, frozenset(outdated)


def _refuse_weaker(new: Collection, old: Collection) -> None:
    for where, text in weaker_clauses(new, old):
        raise InvalidValue(f"{new.name}.{where}", f"version {new.version}", f"no weaker promise: {text}; {AGREED}")
