"""A collector whose documents have a new format goes on with the version that it serves, as it was signed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hubbub.authoring import load_collection
from hubbub.authoring.toml import EXAMPLE
from hubbub.collection import Keys, ManualClock, open_sealed
from hubbub.collection import formats as documents
from hubbub.collection.formats import DocumentFormat
from hubbub.core.errors import InvalidValue
from hubbub.questions import read_collection
from hubbub.service.collector.collector import Collector
from hubbub.service.store.sqlite import SqliteStore

KEYS = Keys(b"k" * 32)


def in_weeks(document: dict[str, Any]) -> dict[str, Any]:
    """A made-up change: retention was once in weeks."""
    weeks = document.pop("retention_weeks")
    return {**document, "retention_days": 7 * weeks}


def test_a_version_stays_as_it_was_signed_and_the_next_has_the_new_format(monkeypatch: pytest.MonkeyPatch) -> None:
    text = EXAMPLE.replace("[schedule]", '[schedule]\nretention = "14d"')
    spec = load_collection(text).spec()
    del spec["retention_days"]
    monkeypatch.setattr(documents, "COLLECTION", DocumentFormat("collection", 4, {1: dict, 2: dict, 3: in_weeks}))
    store, clock = SqliteStore(":memory:"), ManualClock(7200.0)
    older = Collector([read_collection({**spec, "retention_weeks": 2})], store, clock=clock, keys=KEYS)
    newer = Collector([load_collection(text)], store, clock=clock, keys=KEYS)
    signed = older.served.current["themes"].collection_id
    assert load_collection(text).collection_id != signed
    assert newer.served.current["themes"].collection_id == signed
    assert newer.specs["themes"].body == older.specs["themes"].body
    assert newer.asks["themes"].body == older.asks["themes"].body  # the conversation goes on
    assert [row.id for row in store.collections()] == [signed]
    with pytest.raises(InvalidValue, match="a change is a new version"):
        Collector([load_collection(text.replace("14d", "21d"))], store, clock=clock, keys=KEYS)
    later = Collector([load_collection(text.replace("version = 1", "version = 2"))], store, clock=clock, keys=KEYS)
    assert later.served.outdated == {("themes", 1): signed}
    assert open_sealed(json.loads(later.specs["themes"].body), KEYS.public)["format"] == 4
    clock.set(7200.0 + 20 * 86400)
    later.tick()  # and what is promised of the older version's retention is read in weeks
    assert store.era(signed, "popular") is None


def test_what_was_signed_before_hashes_had_names_goes_on_with_the_first_and_the_next_version_has_the_better() -> None:
    text = EXAMPLE.replace('kind = "histogram"', 'kind = "histogram"\nmechanism = "OLH"')
    collection = load_collection(text)
    signed = replace(collection, hash="mix32")
    assert "hash" not in signed.spec()
    assert signed.terms["popular"].mechanisms != collection.terms["popular"].mechanisms
    store, clock = SqliteStore(":memory:"), ManualClock(7200.0)
    earlier = Collector([signed], store, clock=clock, keys=KEYS)
    again = Collector([collection], store, clock=clock, keys=KEYS)
    assert again.specs["themes"].body == earlier.specs["themes"].body
    assert again.asks["themes"].body == earlier.asks["themes"].body
    later = Collector([load_collection(text.replace("version = 1", "version = 2"))], store, clock=clock, keys=KEYS)
    clock.set(10_800.0)
    later.tick()
    for collector, name in ((again, None), (later, "product32")):
        (published,) = json.loads(json.loads(collector.asks["themes"].body)["payload"])["asks"]
        assert published["ask"]["mechanism"].get("hash") == name
        assert json.loads(json.loads(collector.specs["themes"].body)["payload"]).get("hash") == name
