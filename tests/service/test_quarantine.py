"""A database and a folder of reports that do not belong together: nothing is deleted, and what is missing is said."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest
from loopback import running
from test_kept import CROWD, DAY, HOUR, WORDS, asked, collector, fill
from web import AUTHORIZED, TOKEN, problem

from hubbub import Random
from hubbub.collection import ManualClock
from hubbub.collection.relay_batch import Batch
from hubbub.service.app import create_app
from hubbub.service.archive import Archive, ReportsMissing
from hubbub.service.auth import Tokens
from hubbub.service.collector import Collector
from hubbub.service.frames import Frame
from hubbub.service.metrics import metrics_text
from hubbub.service.service import Service
from hubbub.service.store.sqlite import SqliteStore


def opened(folder: Path, clock: ManualClock, archive: bool = True) -> Collector:
    return collector(SqliteStore(folder / "store.db"), clock, Archive(folder / "reports") if archive else None)


def step(one: Collector, clock: ManualClock, seed: int) -> None:
    fill(one, seed)
    clock.advance(HOUR)
    one.tick()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.exists() else []


def test_files_that_an_older_database_does_not_name_are_set_aside_until_their_retention_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    clock, aside = ManualClock(10 * HOUR), tmp_path / "reports" / "set-aside"
    one = opened(tmp_path, clock)
    step(one, clock, 1)
    step(one, clock, 2)
    before = names(tmp_path / "reports")
    one.store.close()
    shutil.copy(tmp_path / "store.db", tmp_path / "older.db")
    one = opened(tmp_path, clock)
    step(one, clock, 3)
    step(one, clock, 4)
    later = sorted(set(names(tmp_path / "reports")) - set(before))
    contents = {name: (tmp_path / "reports" / name).read_bytes() for name in later}
    assert len(later) == 4  # two questions, two steps
    one.store.close()

    (tmp_path / "older.db").rename(tmp_path / "store.db")
    with caplog.at_level(logging.WARNING, "hubbub.service"):
        one = opened(tmp_path, clock)
    (record,) = [record for record in caplog.records if record.getMessage() == "set aside"]
    assert set(record.fields["files"]) == {name for name in later if "-12-" in name}  # type: ignore[attr-defined]
    # The reports of step 11 were in the older database too, and were moved again: those files are as they were.
    assert one.missing == []
    assert asked(one, "ages", ["7"])["n"] == 2 * CROWD
    assert {name: (aside / name).read_bytes() for name in names(aside)} == {
        name: content for name, content in contents.items() if name in names(aside)
    }
    one.store.close()
    clock.set(12 * HOUR + DAY)  # the retention of step 11 is over, not that of step 12
    one = opened(tmp_path, clock)
    assert names(tmp_path / "reports") == []
    assert len(names(aside)) == 2
    one.store.close()
    clock.set(14 * HOUR + DAY)
    one = opened(tmp_path, clock)
    assert names(tmp_path / "reports") == []
    assert not aside.exists(), "deletion was promised"
    one.store.close()


def test_a_file_with_more_reports_than_an_older_database_knows_is_not_written_over(tmp_path: Path):
    clock = ManualClock(10 * HOUR)
    one = opened(tmp_path, clock)
    fill(one, 1)
    one.store.close()
    shutil.copy(tmp_path / "store.db", tmp_path / "older.db")
    one = opened(tmp_path, clock)
    more(one, "ages", 500)
    clock.advance(2 * HOUR)
    one.tick()
    assert asked(one, "ages", ["7"])["n"] == CROWD + 500
    files = {name: (tmp_path / "reports" / name).read_bytes() for name in names(tmp_path / "reports")}
    one.store.close()
    (tmp_path / "older.db").rename(tmp_path / "store.db")
    one = opened(tmp_path, clock)
    assert asked(one, "ages", ["7"])["n"] == CROWD
    (name,) = names(tmp_path / "reports" / "set-aside")
    assert name.startswith("ages-10-")
    assert (tmp_path / "reports" / "set-aside" / name).read_bytes() == files[name]
    assert names(tmp_path / "reports") == sorted(files)
    one.store.close()


def more(one: Collector, question: str, number: int) -> None:
    (window,) = [window for window in one.board.asks.values() if window.question == question]
    rng = Random(seed=99)
    reports = window.ask.mechanism.randomize([7] * number, rng)
    batch = Batch(WORDS.name, WORDS.version, window.name, rng.bytes(16 * number), reports.to_bare())
    assert one.ingest([Frame(WORDS.collection_id, batch=batch)])[0].accepted == number


@pytest.mark.parametrize("what", ["no folder", "an empty folder", "half a file", "another file"])
def test_what_is_missing_is_said(tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture):
    clock = ManualClock(10 * HOUR)
    one = opened(tmp_path, clock)
    step(one, clock, 1)
    step(one, clock, 2)
    clock.advance(HOUR)
    one.tick()
    one.store.close()
    files = {path.name: path for path in (tmp_path / "reports").iterdir()}
    of_ages = sorted(name for name in files if name.startswith("ages"))
    if what == "half a file":
        files[of_ages[0]].write_bytes(files[of_ages[0]].read_bytes()[:-100])
    elif what == "another file":
        archive = Archive(tmp_path / "reports")
        archive.write(of_ages[0], archive.read(of_ages[1])[:7])
    else:
        shutil.rmtree(tmp_path / "reports")
    with caplog.at_level(logging.ERROR, "hubbub.service"):
        one = opened(tmp_path, clock, archive=what != "no folder")
    said = [record.fields for record in caplog.records if record.getMessage() == "reports missing"]  # type: ignore[attr-defined]
    if "folder" in what:
        assert [fields["count"] for fields in said] == [4]
        assert one.missing == sorted(files)
        assert "hubbub_missing_files 4" in metrics_text(Service(one))
    with pytest.raises(ReportsMissing, match=of_ages[0]):
        asked(one, "ages", ["7"])
    assert asked(one, "sums", ["7"])["n"] == 0  # a question that keeps none misses none
    path = "/v1/collections/words/questions/ages/candidates?candidate=7"
    with running(create_app(Service(one), Tokens([TOKEN]))) as client:
        answer = client.get(path, headers=AUTHORIZED)
        assert (answer.status_code, problem(answer)) == (409, "reports_missing")
        assert of_ages[0] in json.loads(answer.content)["detail"]
        assert client.get(f"{path}&to=3", headers=AUTHORIZED).json()["n"] == 0  # of steps that it has all of
