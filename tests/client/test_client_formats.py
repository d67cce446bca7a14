"""Signed documents of other formats: a device continues with an older one that it stored, and refuses a newer one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hubbub.client.documents import ClientRefusal
from hubbub.collection import Collection, ManualClock, seal
from hubbub.collection import formats as documents
from hubbub.collection.formats import DocumentFormat
from hubbub.core.spec import spec_id
from tests.client.device import begin, device
from tests.client.local_server import LocalServer, survey

HOUR = 3600


def in_weeks(document: dict[str, Any]) -> dict[str, Any]:
    """A made-up change: retention was once in weeks."""
    weeks = document.pop("retention_weeks")
    return {**document, "retention_days": 7 * weeks}


def test_a_device_that_is_upgraded_goes_on_with_the_document_it_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = survey().spec()
    del spec["retention_days"]
    older = {**spec, "retention_weeks": 13}
    monkeypatch.setattr(documents, "COLLECTION", DocumentFormat("collection", 4, {1: dict, 2: dict, 3: in_weeks}))
    clock = ManualClock()
    server = LocalServer(Collection.from_spec(older))
    for step in (5, 6):  # once to fetch it, once with what it kept
        with device(folder, server, clock) as client:
            begin(server, clock, step)
            client.record("theme", "dark")
            assert client.tick() == 1
            assert client.upload() == 1
            assert client._current.collection is not None
            assert client._current.collection.collection_id == spec_id(older)


def test_a_newer_format_is_refused_and_the_version_in_force_goes_on(folder: Path) -> None:
    clock, server = ManualClock(), LocalServer(survey())
    with device(folder, server, clock) as client:
        begin(server, clock, 5)
        client.record("theme", "dark")
        assert client.tick() == 1
        newer = {**server.collection.spec(), "format": 4, "version": 2, "colour": 3}
        server.documents["/v1/collections/survey"] = seal(newer, server.keys.private)
        with pytest.raises(ClientRefusal, match=r"format 4.*a newer one wrote it, and is needed to read it") as caught:
            client._current._documents.fetch_collection()
        assert caught.value.reason == "format"
        begin(server, clock, 6)
        assert client.tick() == 1


def test_a_kept_document_of_a_newer_format_is_not_taken_for_none(folder: Path) -> None:
    """Such as after going back to an older client: to begin anew would forget what was promised."""
    clock, server = ManualClock(), LocalServer(survey())
    with device(folder, server, clock) as client:
        begin(server, clock, 5)
        assert client.tick() == 1
        with client._store.transaction():
            document = client._store.document("collection")
            assert document is not None
            newer = seal({**server.collection.spec(), "format": 9}, server.keys.private)

            client._store.set_document("collection", document._replace(body=json.dumps(newer)))
    with pytest.raises(ClientRefusal, match="format 9"):
        device(folder, server, clock)
