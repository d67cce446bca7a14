"""Formats of files and signed documents: an older document is upgraded, a newer one refused."""

import json
from typing import Any

import pytest

from hubbub.authoring import load_collection
from hubbub.authoring.check import open_collection
from hubbub.authoring.toml import EXAMPLE
from hubbub.collection import Keys, SignedCollection, seal
from hubbub.collection.sealing import DocumentFormat
from hubbub.core.migrations import UnknownFormat

KEYS = Keys(b"k" * 32)


def test_a_file_without_a_number_is_of_format_1() -> None:
    assert load_collection("format = 1\n" + EXAMPLE) == load_collection(EXAMPLE)


@pytest.mark.parametrize("written", ["0", "2", "99", '"1"', "true", "1.0", "-1"])
def test_a_file_of_an_unknown_format_is_refused(written: str) -> None:
    with pytest.raises(UnknownFormat, match=r"format: got .format"):
        load_collection(f"format = {written}\n" + EXAMPLE)


def test_a_document_is_upgraded_step_by_step_and_what_is_given_is_not_changed() -> None:
    """A made-up format: retention was in weeks, then in days, then in hours."""

    def in_days(document: dict[str, Any]) -> dict[str, Any]:
        weeks = document.pop("weeks")
        return {**document, "format": 2, "days": 7 * weeks}

    def in_hours(document: dict[str, Any]) -> dict[str, Any]:
        days = document.pop("days")
        return {**document, "format": 3, "hours": 24 * days}

    made_up = DocumentFormat("made up", 3, {1: in_days, 2: in_hours})
    present = {"format": 3, "hours": 336, "fields": {"theme": 1}}
    for older in ({"format": 1, "weeks": 2}, {"format": 2, "days": 14}, {"format": 3, "hours": 336}):
        document = {**older, "fields": {"theme": 1}}
        before = json.dumps(document)
        assert made_up.upgrade(document) == present
        assert json.dumps(document) == before
    with pytest.raises(UnknownFormat, match="at most format 3"):
        made_up.upgrade({"format": 4})


def test_a_newer_document_is_refused_by_its_number() -> None:
    spec = {**load_collection(EXAMPLE).spec(), "format": 2, "colour": 3}
    with pytest.raises(UnknownFormat, match=r"format 2.*at most format 1.*a newer one wrote it, and is needed"):
        open_collection(seal(spec, KEYS.private), KEYS.public)


@pytest.mark.parametrize("format", [None, "1", True, 1.5, [], 0, -1])
def test_a_format_that_is_none_is_refused(format: Any) -> None:
    with pytest.raises(UnknownFormat):
        SignedCollection.from_spec({**load_collection(EXAMPLE).spec(), "format": format})
