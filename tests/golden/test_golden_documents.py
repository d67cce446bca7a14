"""Golden files of every format (documents, devices, releases) are read as they were meant; no format is without."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.authoring import read_collection
from hubbub.authoring.check import open_collection
from hubbub.authoring.toml import FORMAT as TOML
from hubbub.client import store as client
from hubbub.client.documents import read_asks
from hubbub.client.store import FORMAT as CLIENT
from hubbub.collection import ManualClock
from hubbub.collection.sealing import ASKS, COLLECTION
from hubbub.core.migrations import Versions
from hubbub.core.reports import Reports, Sketch
from hubbub.curator import files as release_file
from hubbub.curator import files as sums_file
from hubbub.curator.factorised import FactorisedCounter
from hubbub.curator.files import ReleaseFile, SumsFile
from hubbub.curator.tops import ToPS
from hubbub.ledger.file import LedgerUnavailable
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask
from hubbub.protocols.topl.server import ToPL
from hubbub.questions import read_collection as read_signed
from hubbub.random.source import Random
from hubbub.rehearse import release as local_release_file
from hubbub.rehearse.release import LocalReleaseFile
from hubbub.service.store.schema import FORMAT as STORE
from hubbub.shuffler import store as shuffler_store
from hubbub.wire.batches import decode_batch, encode_batch
from hubbub.wire.upload import decode_upload, decode_upload_json, encode_upload, encode_upload_json
from tests.golden.make_device import HOUR, SurveyServer, device
from tests.golden.make_documents import every_mechanism
from tests.golden.make_release import VALUES

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
    document = read_asks((folder / "signed.json").read_text(), (bytes.fromhex(known["key"]),))
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
        assert [(str(row.name), row.report_id.hex(), row.report.hex()) for row in upload.entries] == entries
        assert [int(row.reports(mechanism).private["value"][0]) for row in upload.entries] == known["values"]
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


CLIENTS = sorted(path.name for path in HERE.glob("client-*"))


def golden(name: str, place: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of golden files, and what is expected of them."""
    folder = place / name
    shutil.copytree(HERE / name, folder)
    return folder, json.loads((folder / "expected.json").read_text())


def terms(path: Path) -> dict[str, Any]:
    with sqlite3.connect(path) as database:
        ((text,),) = database.execute("SELECT terms FROM terms")
    database.close()
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_goes_on(tmp_path: Path, name: str) -> None:
    folder, expected = golden(name, tmp_path)
    clock = ManualClock(expected["now"])
    server = SurveyServer(clock)
    server.serve(expected["version"])
    with device(folder, clock, server) as client:
        status = client.status()
        stored = {name: getattr(status, name) for name in ("version", "spent", "queued", "memos", "counts")}
        assert stored == {name: expected[name] for name in stored}
        left = {unit: getattr(status, unit).remaining for unit in expected["remaining"]}
        assert left == expected["remaining"]
        assert client.upload() == expected["queued"]
        histogram = 250_000_000_000
        clock.set(clock.now() + HOUR)
        server.collector.tick()
        client.record("home", 3)  # known, and paid for
        client.tick()
        assert expected["spent"] < client.status().spent <= expected["spent"] + histogram
        assert dict(client.status().memos) == expected["memos"]
    assert terms(folder / "client.sqlite")["client"] == CLIENT.version


def test_a_newer_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    folder, expected = golden("client-1", tmp_path)
    file = folder / "client.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("UPDATE terms SET terms = ?", [json.dumps({**terms(file), "client": 99})])
    database.close()
    before = file.read_bytes()
    clock = ManualClock(expected["now"])
    with pytest.raises(LedgerUnavailable, match=r"format 99.*a newer one wrote it"):
        device(folder, clock, SurveyServer(clock))
    assert file.read_bytes() == before


def test_a_folder_that_lost_its_file_is_refused(tmp_path: Path) -> None:
    folder, expected = golden("client-1", tmp_path)
    (folder / "client.sqlite").unlink()
    clock = ManualClock(expected["now"])
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="missing, and was there before"):
            device(folder, clock, SurveyServer(clock))


def copied(name: str, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    shutil.copytree(HERE / name, tmp_path / "copy")
    return tmp_path / "copy" / "state", json.loads((HERE / name / "expected.json").read_text())


def floats(told: list[float | None]) -> Any:
    return pytest.approx(np.array(told, dtype=float), nan_ok=True)


def test_a_release_is_answered_again(tmp_path: Path) -> None:
    path, told = copied("release-1", tmp_path)
    with ReleaseFile(path, ToPS(**told["settings"]), source="golden", every=told["every"]) as release:
        assert release.pending.published == floats(told["pending"])
        assert release.replay(np.array(VALUES))[:60] == floats(told["again"])


def test_a_local_release_goes_on(tmp_path: Path) -> None:
    path, told = copied("local-1", tmp_path)
    with LocalReleaseFile(path, ToPL(**told["settings"]), source="golden") as release:
        assert [list(step) for step in release.steps] == told["steps"]
        assert release.server.theta == told["theta"]
        assert len(release.server.clipping) == 2
        steps = release.report(np.array(VALUES[150:]), Random(seed=2))
    assert [step.step for step in steps] == [2]


def test_running_sums_are_answered_again(tmp_path: Path) -> None:
    path, told = copied("sums-1", tmp_path)
    with SumsFile(path, FactorisedCounter(**told["settings"]), 20.0, source="golden") as sums:
        assert sums.pending.published == floats(told["pending"])
        assert sums.replay(np.array(VALUES))[:60] == floats(told["again"])
