"""The versions of collections: which ones are served, which are outdated, and through which a question goes on."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from hubbub.collection.safety import AGREED, weaker_clauses
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.spec import canonical
from hubbub.questions import read_collection
from hubbub.questions.collection import Collection
from hubbub.service.rounds.eras import KnownVersions, difference
from hubbub.service.store.base import CollectionRow
from hubbub.service.store.sql import Store


def register(collections: Sequence[Collection], store: Store) -> tuple[list[CollectionRow], frozenset[str]]:
    """The rows of new versions to store, and the ids of the outdated versions.

    A version that was served must not change, and a later version must not promise people less: else `InvalidValue`.
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


class VersionHistory:
    """Through which versions each question went on. A series ends where a version changes what the question asks."""

    def __init__(self, collections: Mapping[str, Collection], store: Store, versions: KnownVersions) -> None:
        self._collections, self._store, self._versions = collections, store, versions
        self._read_versions: dict[str, list[Collection]] = {}
        self._all: dict[tuple[str, str], list[list[Collection]]] = {}

    def series(self, name: str, question: str, version: int | None = None) -> list[Collection]:
        """The versions, oldest first, of the series that this version belongs to, or the served one; else none."""
        wanted = self._collections[name].version if version is None else version
        for series in self._series(name, question):
            if any(each.version == wanted for each in series):
                return series
        return []

    def ended(self, name: str) -> dict[str, list[int]]:
        """The last version of each series that the served version does not continue, oldest first, by question."""
        served = self._collections[name].version
        questions = {question for each in self._earlier(name) for question in each.questions}
        last = {question: [series[-1].version for series in self._series(name, question)] for question in questions}
        ended = {question: [end for end in ends if end != served] for question, ends in sorted(last.items())}
        return {question: ends for question, ends in ended.items() if ends}

    def _series(self, name: str, question: str) -> list[list[Collection]]:
        if (name, question) in self._all:
            return self._all[name, question]
        series: list[list[Collection]] = []
        for version in (*self._earlier(name), self._collections[name]):
            served = version is self._collections[name]
            if question not in version.questions:
                continue
            if not served and self._store.last_step(version.collection_id, question) is None:
                continue
            if series and difference(series[-1][-1], version, question) is None:
                series[-1].append(version)
            else:
                series.append([version])
        if series:  # anyone may ask for any name
            self._all[name, question] = series
        return series

    def _earlier(self, name: str) -> list[Collection]:
        if name not in self._read_versions:  # when it is first asked for: compiling many versions takes a while
            self._read_versions[name] = list(self._read(name))
        return self._read_versions[name]

    def _read(self, name: str) -> Iterator[Collection]:
        """The earlier versions, oldest first, but for those whose kinds of questions are no longer there."""
        for row in self._versions.of(name):
            if row.version < self._collections[name].version:
                with suppress(HubbubError):
                    yield self._versions.read(row)
