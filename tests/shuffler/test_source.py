"""The documents that a shuffler goes by: signed by a trusted key, of its collection, and no older ones."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from hubbub.authoring.toml import EXAMPLE, load_collection
from hubbub.client import Response
from hubbub.client.upload import Unreachable
from hubbub.collection import Keys, SignedCollection, seal
from hubbub.collection.names import AnswerName
from hubbub.core.errors import DecodeError
from hubbub.protocols.ask import Ask
from hubbub.questions.collection import Collection
from hubbub.shuffler.source import SignedSource
from tests.shared.asks import first_ask

OWN, FOREIGN = Keys(b"k" * 32), Keys(b"f" * 32)
FIRST = load_collection(EXAMPLE)
SECOND = load_collection(EXAMPLE.replace("version = 1", "version = 2"))


class Serving:
    """A collector that serves one signed document."""

    def __init__(self, spec: Any, keys: Keys) -> None:
        self._body = json.dumps(seal(spec, keys.private)).encode()

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        return Response(200, {}, self._body)


def fetched(collection: Collection, keys: Keys = OWN, *, known: Collection | None = None) -> SignedCollection:
    return SignedSource("themes", Serving(collection.spec(), keys), OWN.public).fetch(known)[0]


def test_a_document_of_a_trusted_key_is_read() -> None:
    assert fetched(FIRST).collection_id == FIRST.collection_id
    assert fetched(SECOND, known=FIRST).collection_id == SECOND.collection_id
    assert fetched(FIRST, known=FIRST).collection_id == FIRST.collection_id


def test_a_document_that_another_key_signed_is_refused() -> None:
    """The document names its own key, and its signature is valid: the key is not one that this shuffler was given."""
    with pytest.raises(DecodeError, match="a trusted key"):
        fetched(FIRST, FOREIGN)


def test_a_stored_document_of_another_key_is_refused() -> None:
    document = json.dumps(seal(FIRST.spec(), FOREIGN.private))
    with pytest.raises(DecodeError, match="a trusted key"):
        SignedSource("themes", Serving(FIRST.spec(), OWN), OWN.public).read(document)


def test_an_older_version_is_refused() -> None:
    with pytest.raises(DecodeError, match="2 or newer"):
        fetched(FIRST, known=SECOND)


def test_a_version_that_changed_is_refused() -> None:
    changed = load_collection(EXAMPLE.replace('title = "', 'title = "Other '))
    assert changed.version == FIRST.version
    assert changed.collection_id != FIRST.collection_id
    with pytest.raises(DecodeError, match="a version never changes"):
        fetched(changed, known=FIRST)


def test_another_collection_is_refused() -> None:
    other = load_collection(EXAMPLE.replace('name = "themes"', 'name = "others"'))
    with pytest.raises(DecodeError, match="themes"):
        fetched(other)


ANSWER = AnswerName("popular", 0, 7, 1, 0)
ASK = replace(first_ask(FIRST.protocol("popular")), step=7)


def fetched_ask(keys: Keys = OWN, **changes: Any) -> Ask:
    listed = {**ANSWER._asdict(), "closes": 9.0, "ask": ASK.spec()}
    spec = {"format": 1, "collection": "themes", "version": 1, "step": 7, "closes": 9.0, "asks": [listed], **changes}
    return SignedSource("themes", Serving(spec, keys), OWN.public).ask(ANSWER, FIRST)


def test_an_ask_that_another_key_signed_or_of_another_version_is_refused() -> None:
    assert fetched_ask() == ASK
    with pytest.raises(Unreachable, match="a trusted key"):
        fetched_ask(FOREIGN)
    for change in ({"version": 2}, {"collection": "others"}):
        with pytest.raises(Unreachable, match="asks of another version"):
            fetched_ask(**change)
