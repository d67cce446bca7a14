"""What is written, signed and sent in every format is read as it was meant; and no format is without files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import read_collection
from hubbub.authoring.check import open_collection
from hubbub.authoring.toml import FORMAT as TOML
from hubbub.client import store as client
from hubbub.client.documents import _asks
from hubbub.collection.formats import ASKS, COLLECTION
from hubbub.core.migrations import Versions
from hubbub.core.reports import Reports, Sketch
from hubbub.curator import files as release_file
from hubbub.curator import files as sums_file
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask
from hubbub.questions import read_collection as read_signed
from hubbub.rehearse import release as local_release_file
from hubbub.service.store.schema import FORMAT as STORE
from hubbub.shuffler import store as shuffler_store
from hubbub.wire.batches import decode_batch, encode_batch
from hubbub.wire.upload import decode_upload, decode_upload_json, encode_upload, encode_upload_json
from tests.golden.make_documents import every_mechanism

HERE = Path(__file__).parent
FORMATS: dict[str, Versions[Any]] = {
    "client": client.FORMAT,
    "store": STORE,
    "collection": COLLECTION,
    "asks": ASKS,
    "toml": TOML,
    "release": release_file.RELEASE_FORMAT,
    "local": local_release_file.FORMAT,
    "sums": sums_file.SUMS_FORMAT,
    "shuffler": shuffler_store.FORMAT,
}
MECHANISMS = sorted((HERE / "mechanisms-1").glob("*.json"))


def versions(name: str) -> list[Path]:
    return sorted(HERE.glob(f"{name}-*"))


def expected(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_its_golden_files(name: str) -> None:
    """If this fails, a format has a new number: make its files with the new code, as the README says, and add them."""
    format = FORMATS[name]
    for version in range(format.oldest, format.version + 1):
        assert (HERE / f"{name}-{version}" / "expected.json").is_file(), f"{name}-{version}: no golden files"
    newest = max(int(path.name.split("-")[1]) for path in versions(name))
    assert newest == format.version, f"{name}: there are golden files of format {newest}"


@pytest.mark.parametrize("folder", versions("toml"), ids=lambda path: path.name)
def test_collection_files_are_read(folder: Path) -> None:
    for name, spec in expected(folder).items():
        assert read_collection(folder / f"{name}.toml") == read_signed(spec)


@pytest.mark.parametrize("folder", versions("collection"), ids=lambda path: path.name)
def test_signed_collections_are_read_under_the_id_that_they_had(folder: Path) -> None:
    known = expected(folder)
    found = open_collection(json.loads((folder / "signed.json").read_text()), bytes.fromhex(known["key"]))
    assert found.collection_id == known["id"]
    assert found.spec() == known["spec"]


@pytest.mark.parametrize("folder", versions("asks"), ids=lambda path: path.name)
def test_signed_asks_are_read(folder: Path) -> None:
    known = expected(folder)
    document = _asks((folder / "signed.json").read_text(), (bytes.fromhex(known["key"]),))
    assert (document.collection, document.version) == (known["collection"], known["version"])
    assert {published.question: published.round for published in document.asks} == known["rounds"]
    assert {published.question: published.ask.ask_id for published in document.asks} == known["asks"]
    for published in document.asks:
        assert Ask.from_spec(published.ask.spec()) == published.ask


@pytest.mark.parametrize("folder", versions("wire"), ids=lambda path: path.name)
def test_frames_are_read_and_made_byte_for_byte(folder: Path) -> None:
    known = expected(folder)
    entries = [tuple(entry) for entry in known["entries"]]
    mechanism = ReportFormat.from_spec(known["mechanism"])
    for name, decode, encode in (
        ("upload.msgpack", decode_upload, encode_upload),
        ("upload.json", decode_upload_json, encode_upload_json),
    ):
        data = (folder / name).read_bytes()
        upload = decode(data)
        assert [(str(one.name), one.report_id.hex(), one.report.hex()) for one in upload.entries] == entries
        assert [int(one.reports(mechanism).private["value"][0]) for one in upload.entries] == known["values"]
        assert encode(upload.collection, upload.version, upload.entries, 1024) == data
    cover = (folder / "cover.msgpack").read_bytes()
    assert decode_upload(cover).entries == []
    assert encode_upload(decode_upload(cover).collection, decode_upload(cover).version, [], 1024) == cover
    data = (folder / "batch.msgpack").read_bytes()
    batch = decode_batch(data)
    reports = batch.read(mechanism)
    mechanism.check(reports)
    assert reports.private["value"].tolist() == known["values"]
    assert encode_batch(batch.collection, batch.version, batch.name, batch.ids, reports) == data


@pytest.mark.parametrize("path", MECHANISMS, ids=lambda path: path.stem)
def test_mechanisms_are_read_from_their_specs_and_count_the_same(path: Path) -> None:
    known = json.loads(path.read_text())
    mechanism = ReportFormat.from_spec(known["spec"])
    assert mechanism.spec() == known["spec"]
    assert mechanism.spec_id == known["spec_id"]
    if "reports" in known:
        reports = Reports.from_bytes(bytes.fromhex(known["reports"]))
        assert reports.to_bytes().hex() == known["reports"]
        sketch = mechanism.accumulate(reports)
        assert sketch == Sketch.from_bytes(bytes.fromhex(known["sketch"]))
        assert sketch.to_bytes().hex() == known["sketch"]


def test_every_mechanism_has_its_golden_file() -> None:
    """If this fails, there is a new mechanism: make its file with `make_documents.py mechanisms`, and add it."""
    have = {path.stem.split("-")[0] for path in MECHANISMS}
    assert {mechanism.spec()["mechanism"] for mechanism in every_mechanism()} <= have
