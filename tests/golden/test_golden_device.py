"""What devices keep is opened, spends nothing anew, and goes on."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hubbub.client.store import FORMAT as CLIENT
from hubbub.collection import ManualClock
from hubbub.ledger.file import LedgerUnavailable
from tests.golden.make_device import HOUR, SurveyServer, device

HERE = Path(__file__).parent
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
        assert (status.version, status.spent, status.queued) == (
            expected["version"],
            expected["spent"],
            expected["queued"],
        )
        assert (dict(status.memos), dict(status.counts)) == (expected["memos"], expected["counts"])
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
