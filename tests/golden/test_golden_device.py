"""What devices kept in older formats is opened, spends nothing anew, and goes on."""

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
CLIENTS = [
    f"client-{version}{later}" for version in range(CLIENT.oldest, CLIENT.version + 1) for later in ("", "-later")
]


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
    if not (folder / "client.json").exists():  # ledgers in files of their own, and reports with names no longer taken
        expected["counts"]["outdated"] = expected["counts"].get("outdated", 0) + expected["queued"]
        expected["queued"] = 0
    with device(folder, clock, server) as client:
        assert not list(folder.glob("asks-*")) + list(folder.glob("memos-*"))
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


@pytest.mark.parametrize("name", ["client-2", "client-2-later"])
def test_a_folder_older_than_streams_of_changes_gets_their_table(tmp_path: Path, name: str) -> None:
    folder, expected = golden(name, tmp_path)
    with sqlite3.connect(folder / "client.sqlite") as database:
        database.execute("DROP TABLE following")
    database.close()
    clock = ManualClock(expected["now"])
    with device(folder, clock, SurveyServer(clock)) as client:
        assert client.status().spent == expected["spent"]


@pytest.mark.parametrize(
    ("name", "file", "key"),
    [
        ("client-4", "client.sqlite", "client"),
        ("client-3", "client.sqlite", "client"),
        ("client-3", "asks-1.sqlite", "version"),
    ],
)
def test_a_newer_format_is_refused_and_left_as_it_is(tmp_path: Path, name: str, file: str, key: str) -> None:
    folder, expected = golden(name, tmp_path)
    newer = {**terms(folder / file), key: 99}
    with sqlite3.connect(folder / file) as database:
        database.execute("UPDATE terms SET terms = ?", [json.dumps(newer)])
    database.close()
    before = (folder / file).read_bytes()
    clock = ManualClock(expected["now"])
    with pytest.raises(LedgerUnavailable, match=r"format 99.*a newer one wrote it"):
        device(folder, clock, SurveyServer(clock))
    assert (folder / file).read_bytes() == before


@pytest.mark.parametrize("name", ["client-3", "client-3-later"])
def test_what_was_promised_and_spent_in_older_files_is_carried(tmp_path: Path, name: str) -> None:
    """The window of 24 steps and 20 epsilon, and the life of 40, hold over what the older files say was spent."""
    folder, expected = golden(name, tmp_path)
    clock = ManualClock(expected["now"])
    server = SurveyServer(clock)
    server.serve(expected["version"])
    with device(folder, clock, server) as client:
        limits = {(promise.seconds, promise.limit) for promise in client.status().promises}
        assert limits == {(24.0 * HOUR, 20 * 10**12), (None, 40 * 10**12)}
        for step in range(1, 60):
            clock.set(expected["now"] + step * HOUR)
            server.collector.tick()
            client.record("home", step % 6)
            client.tick()
        assert client.status().spent <= 40 * 10**12
        user = client.status().user
        assert user is not None
        assert user.spent == client.status().spent


@pytest.mark.parametrize("lost", ["asks-1.sqlite", "memos-1.sqlite", "client.sqlite"])
def test_a_folder_that_lost_a_ledger_is_refused(tmp_path: Path, lost: str) -> None:
    folder, expected = golden("client-3", tmp_path)
    (folder / lost).unlink()
    clock = ManualClock(expected["now"])
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="missing, and was there before"):
            device(folder, clock, SurveyServer(clock))
