"""Formats of files and signed documents: older ones are rewritten or read as they were signed, newer ones refused."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import load_collection, rewrite
from hubbub.authoring.check import open_collection
from hubbub.authoring.rewrite import OutdatedFile, TomlFormat
from hubbub.authoring.toml import EXAMPLE
from hubbub.collection import Collection, Keys, open_sealed, seal
from hubbub.collection import formats as documents
from hubbub.collection.formats import DocumentFormat
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.migrations import UnknownFormat
from hubbub.core.spec import spec_id

KEYS = Keys(b"k" * 32)
OLDER = """# Our themes
name = "themes"
version = 1
title = "Light or dark?"

[schedule]
every = "1h"      # a step
lateness = "10m"

[privacy]
event = 1.0

[fields.theme]
kind = "categorical"
names = ["light", "dark"]

[questions.popular]
kind = "histogram"
field = "theme"
epsilon = 1.0
"""


def stepped(text: str) -> str:
    """A made-up change: what is `step` today was once `every`."""
    return text.replace("every = ", "step = ")


def in_weeks(document: dict[str, Any]) -> dict[str, Any]:
    """A made-up change: retention was once in weeks."""
    weeks = document.pop("retention_weeks")
    return {**document, "retention_days": 7 * weeks}


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hubbub whose formats have gone on."""
    monkeypatch.setattr(rewrite, "TOML", TomlFormat("format", 2, {1: stepped}))
    monkeypatch.setattr(documents, "COLLECTION", DocumentFormat("collection", 4, {1: dict, 2: dict, 3: in_weeks}))


def older_spec() -> dict[str, Any]:
    """The example as format 3 would have had it."""
    spec = load_collection("format = 2\n" + EXAMPLE).spec()
    del spec["retention_days"]
    return {**spec, "format": 3, "retention_weeks": 13}


# -- files --------------------------------------------------------------------------------------------------------


def test_a_file_without_a_number_is_of_format_1() -> None:
    assert load_collection("format = 1\n" + EXAMPLE) == load_collection(EXAMPLE)


@pytest.mark.parametrize("written", ["0", "2", "99", '"1"', "true", "1.0", "-1"])
def test_a_file_of_an_unknown_format_is_refused(written: str) -> None:
    with pytest.raises(UnknownFormat, match=r"format: got .format"):
        load_collection(f"format = {written}\n" + EXAMPLE)


@pytest.mark.parametrize("number", ["", "format = 1\n", "format=1 # first\n"])
def test_an_older_file_is_refused_with_the_text_that_is_good_today(later: None, tmp_path: Path, number: str) -> None:
    path = tmp_path / "themes.toml"
    path.write_text(number + OLDER)
    with pytest.raises(OutdatedFile) as caught:
        load_collection(path)
    text = caught.value.rewritten
    assert text in str(caught.value)
    assert str(path) in str(caught.value)
    assert text.splitlines()[0] == "format = 2"
    assert text.count("format = ") == 1
    for line in ("# Our themes", 'step = "1h"      # a step'):  # whoever wrote it finds it again
        assert line in text
    assert load_collection(text).step_seconds == 3600
    assert path.read_text() == number + OLDER
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.rewritten) == (str(caught.value), text)


def test_a_number_below_a_table_is_not_the_files(later: None) -> None:
    text = OLDER.replace("[schedule]", '[override]\nformat = "no such advice"\n\n[schedule]')
    with pytest.raises(OutdatedFile) as caught:
        load_collection(text)
    assert caught.value.rewritten.startswith("format = 2\n# Our themes\n")
    assert 'format = "no such advice"' in caught.value.rewritten


# -- signed documents ---------------------------------------------------------------------------------------------


def test_an_older_document_is_read_as_it_was_signed(later: None) -> None:
    spec = older_spec()
    sealed = seal(spec, KEYS.private)
    collection = open_collection(sealed, KEYS.public)
    assert collection.retention_days == 91
    assert collection.collection_id == spec_id(spec)  # what devices and stores know it by
    assert collection.spec() == spec
    assert seal(collection.spec(), KEYS.private) == sealed
    again = pickle.loads(pickle.dumps(collection))
    assert (again, again.collection_id) == (collection, collection.collection_id)
    today = replace(collection, title="Another")
    assert today.spec()["format"] == 4
    assert today.spec()["retention_days"] == 91


def test_the_signature_is_that_of_the_older_bytes(later: None) -> None:
    sealed = seal(older_spec(), KEYS.private)
    tampered = {**sealed, "payload": sealed["payload"].replace('"retention_weeks":13', '"retention_weeks":99')}
    with pytest.raises(DecodeError, match="signature"):
        open_collection(tampered, KEYS.public)


@pytest.mark.parametrize("spoilt", [{"retention_weeks": None}, {"colour": 3}])
def test_an_older_document_is_checked_like_any_other(later: None, spoilt: dict[str, Any]) -> None:
    spec = {name: value for name, value in {**older_spec(), **spoilt}.items() if value is not None}
    with pytest.raises(InvalidValue):
        open_collection(seal(spec, KEYS.private), KEYS.public)


def test_a_newer_document_is_refused_by_its_number() -> None:
    spec = {**load_collection(EXAMPLE).spec(), "format": 4, "colour": 3}
    with pytest.raises(UnknownFormat, match=r"format 4.*at most format 3.*a newer one wrote it, and is needed"):
        open_collection(seal(spec, KEYS.private), KEYS.public)


@pytest.mark.parametrize("format", [None, "1", True, 1.5, [], 0, -1])
def test_a_format_that_is_none_is_refused(format: Any) -> None:
    with pytest.raises(UnknownFormat):
        Collection.from_spec({**load_collection(EXAMPLE).spec(), "format": format})


def test_what_is_given_is_not_changed(later: None) -> None:
    spec = older_spec()
    before = json.dumps(spec)
    Collection.from_spec(spec)
    assert json.dumps(spec) == before
    assert open_sealed(seal(spec, KEYS.private), KEYS.public) == spec
