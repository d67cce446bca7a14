"""Signed documents of a newer format are refused, and the device goes on with what it has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hubbub.client.documents import ClientRefusal
from hubbub.collection import ManualClock, seal
from tests.client.device import begin, device
from tests.client.local_server import LocalServer, survey

HOUR = 3600


def test_a_newer_format_is_refused_and_the_version_in_force_goes_on(folder: Path) -> None:
    clock, server = ManualClock(), LocalServer(survey())
    with device(folder, server, clock) as client:
        begin(server, clock, 5)
        client.record("theme", "dark")
        assert client.tick() == 1
        newer = {**server.collection.spec(), "format": 2, "version": 2, "colour": 3}
        server.documents["/v1/collections/survey"] = seal(newer, server.keys.private)
        with pytest.raises(ClientRefusal, match=r"format 2.*a newer one wrote it, and is needed to read it") as caught:
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
