"""Files of reports are folded once each, on from where it was stopped, and never into half a result."""

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.backends import file_fold, stored_reports
from hubbub.backends.file_fold import FoldStopped, check_files, fold_files
from hubbub.backends.folding import Folded, FoldPlan
from hubbub.backends.report_files import SketchKey, archive_table, landing_batch, row_bytes
from hubbub.backends.stored_reports import FilePart, ReportFiles
from hubbub.core.errors import InvalidValue
from hubbub.core.private_file import replace_private_file
from hubbub.core.reports import Reports

OLH = hb.OLH(epsilon=1.0, domain=50)
KEY = SketchKey("survey", 1, "theme", 0, 7, 1, 0, OLH.spec_id)
PLAN = FoldPlan()


def reports(n: int, seed: int = 1) -> Reports:
    return OLH.randomize(np.arange(n) % 50, hb.Random(seed=seed))


def write(path: Path, rows: list[tuple[SketchKey, bytes, bytes]], group: int = 100) -> None:
    pq.write_table(pa.Table.from_batches([landing_batch(rows, [OLH])]), path, row_group_size=group)


def landed(folder: Path, files: int = 4, n: int = 250) -> Reports:
    """Landing files with different ids, and their reports."""
    folder.mkdir(exist_ok=True)
    whole = reports(files * n)
    ids = np.random.default_rng(2).bytes(16 * files * n)
    rows = [(KEY, ids[16 * at : 16 * at + 16], row) for at, row in enumerate(row_bytes(OLH, whole))]
    for number in range(files):
        write(folder / f"{number}.parquet", rows[number * n : (number + 1) * n])
    return whole


@pytest.fixture(params=["as they are", "cut small", "one bucket"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches and buckets of ids as they are, or so small that there are many, or one that is read in many parts."""
    if request.param != "as they are":
        monkeypatch.setattr(stored_reports, "BATCH_ROWS", 7)
        monkeypatch.setattr(file_fold, "BUCKET_IDS", 16)
    if request.param == "one bucket":
        monkeypatch.setattr(file_fold, "MOST_BUCKETS", 1)


@pytest.mark.usefixtures("sizes")
def test_a_report_that_was_sent_again_counts_once_wherever_it_landed(tmp_path: Path) -> None:
    """In one batch, in another of the file, in another file; with other bytes too. Another ask is another report."""
    rng = np.random.default_rng(5)
    whole = reports(400)
    rows = [(KEY, rng.bytes(16), row) for row in row_bytes(OLH, whole)]
    again = [rows[at] for at in rng.integers(0, 300, 500)]
    changed = [(KEY, rows[at][1], row) for at, row in zip(range(300), row_bytes(OLH, reports(300, 9)), strict=True)]
    elsewhere = [(KEY._replace(step=8), rows[at][1], rows[at][2]) for at in range(50)]
    twice = [(KEY._replace(spec_id="f" * 32), rows[at][1], rows[at][2]) for at in range(10)]
    write(tmp_path / "a.parquet", [*rows[:300], *again[:100]])
    write(tmp_path / "b.parquet", [*changed, *again[100:], *elsewhere, *rows[300:350], *twice], group=30)
    with pa.ipc.new_file(str(tmp_path / "c.arrow"), landing_batch([], [OLH]).schema) as file:
        file.write(landing_batch([*again[:30], *rows[300:]], [OLH]))
    result = fold_files([str(tmp_path)], PLAN, tmp_path / "out")
    assert result.folded.sketches[KEY] == OLH.accumulate(whole)
    assert result.folded.sketches[KEY._replace(step=8)].n == 50
    assert result.repeated == 500 + 300 + 10 + 30 + 50
    assert result.left_out == {}
    assert result.rows == 400 + 500 + 300 + 50 + 10 + 30 + 50


def test_ids_that_are_all_the_same_or_differ_in_few_bits_are_told_apart(tmp_path: Path) -> None:
    same = [(KEY, b"\0" * 16, row) for row in row_bytes(OLH, reports(300))]
    bits = [(KEY, (1 << bit).to_bytes(16, "little"), row) for bit, row in enumerate(row_bytes(OLH, reports(128)))]
    words = [
        (KEY, (at << 64 | at).to_bytes(16, "little"), row) for at, row in enumerate(row_bytes(OLH, reports(99)), 3)
    ]
    write(tmp_path / "a.parquet", [*same, *bits, *words])
    result = fold_files([str(tmp_path)], PLAN, tmp_path / "out")
    assert (result.folded.n, result.repeated) == (1 + 128 + 99, 299)


def test_ids_that_were_chosen_fill_no_bucket(tmp_path: Path) -> None:
    """Who chooses ids does not know the key: none of 16 buckets gets more than twice its share of 2,000 such ids."""
    ids = np.zeros((2000, 2), dtype=np.uint64)
    ids[:, 0] = np.arange(2000, dtype=np.uint64) << np.uint64(40)
    for _ in range(5):
        key = np.frombuffer(os.urandom(32), dtype=np.uint64) | np.uint64(1)
        assert np.bincount((file_fold.bucket_hash(ids, key) >> np.uint64(60)).astype(int), minlength=16).max() < 250


@pytest.mark.usefixtures("sizes")
def test_a_fold_that_was_stopped_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = landed(tmp_path / "day")
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(file_fold, "replace_private_file", third(replace_private_file))
        with pytest.raises(KeyboardInterrupt):
            fold_files([str(tmp_path / "day")], PLAN, out, cores=1)
    assert not out.exists()
    kept = {path.name for path in (tmp_path / "out.parts").glob("*.sketches")}
    assert {"0.sketches", "1.sketches"} <= kept
    assert len(kept) < 12
    read: list[int] = []
    batches = ReportFiles.batches

    def noted(files: ReportFiles, piece: FilePart, columns: Sequence[str] | None = None) -> Iterator[Any]:
        read.append(files.pieces().index(piece))
        return batches(files, piece, columns)

    monkeypatch.setattr(ReportFiles, "batches", noted)
    result = fold_files([str(tmp_path / "day")], PLAN, out, cores=1)
    assert {f"{piece}.sketches" for piece in read} & kept == set(), "neither ids nor reports are read again"
    assert result.folded.sketches == {KEY: OLH.accumulate(whole)}
    assert Folded.from_bytes(out.read_bytes()).sketches == result.folded.sketches
    assert not (tmp_path / "out.parts").exists()
    assert out.stat().st_mode & 0o77 == 0


def third(write: Callable[..., None]) -> Callable[..., None]:
    """A function that is interrupted in place of the third piece."""

    def interrupted(path: Path, content: bytes) -> None:
        if path.name == "2.sketches":
            raise KeyboardInterrupt
        write(path, content)

    return interrupted


def test_what_is_left_of_another_fold_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    landed(tmp_path / "day")
    out = tmp_path / "out"

    path = tmp_path / "day" / "3.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:2000] + bytes(4000) + whole[6000:])
    with pytest.raises(InvalidValue, match=r"3\.parquet"):
        fold_files([str(tmp_path / "day")], FoldPlan(), out, cores=1)
    path.write_bytes(whole)
    assert not list((tmp_path / "out.parts").glob("*.sketches")), "ids are compared first"
    monkeypatch.setattr(file_fold, "replace_private_file", third(replace_private_file))
    with pytest.raises(KeyboardInterrupt):
        fold_files([str(tmp_path / "day")], PLAN, out, cores=1)
    with pytest.raises(FoldStopped, match="another fold"):
        fold_files([str(tmp_path / "day")], FoldPlan(first=1), out)
    landed(tmp_path / "day", files=5)
    with pytest.raises(FoldStopped, match=r"out\.parts has a part of another fold"):
        fold_files([str(tmp_path / "day")], PLAN, out)
    monkeypatch.undo()
    shutil.rmtree(tmp_path / "out.parts")
    assert fold_files([str(tmp_path / "day")], PLAN, out).folded.n == 1250


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    landed(tmp_path / "day")
    (tmp_path / "out.parts").mkdir()
    other = sqlite3.connect(tmp_path / "out.parts" / "lock", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(FoldStopped, match="another process folds into"):
        fold_files([str(tmp_path / "day")], PLAN, tmp_path / "out")
    other.close()
    assert fold_files([str(tmp_path / "day")], PLAN, tmp_path / "out").folded.n == 1000


@pytest.mark.parametrize("damage", ["cut", "header", "page", "empty", "another file"])
def test_a_damaged_file_is_named_and_nothing_is_written(tmp_path: Path, damage: str) -> None:
    landed(tmp_path / "day")
    path = tmp_path / "day" / "2.parquet"
    data = path.read_bytes()
    page = data[:2000] + bytes(4000) + data[6000:]
    content = {"cut": data[:-50], "header": data[:-4] + b"PARX", "page": page, "empty": b""}
    path.write_bytes(content.get(damage, b"a,b\n1,2\n"))
    with pytest.raises(InvalidValue, match=r"2\.parquet"):
        fold_files([str(tmp_path / "day")], PLAN, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    """A limit on the size of files, which writing meets as it meets the end of a disk."""
    landed(tmp_path / "day")
    command = [sys.executable, "-c", "from hubbub.cli import main; main()", "fold", "day", "--out", "out"]
    limited = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
    )
    assert limited.returncode == 2
    # One line of ours; what measures coverage meets the limit too, and says so behind it.
    assert limited.stderr.splitlines()[0].startswith("hubbub: out.parts cannot be written: "), limited.stderr
    assert not (tmp_path / "out").exists()
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert Folded.from_bytes((tmp_path / "out").read_bytes()).n == 1000


def test_what_are_no_files_of_reports_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_temporary").mkdir()
    landed(tmp_path / "_temporary")
    for places in ([], [str(tmp_path)], [str(tmp_path / "nowhere")], ["gopher://x/y"]):
        with pytest.raises(InvalidValue, match="files"):
            fold_files(places, PLAN, tmp_path / "out")
    pq.write_table(archive_table(KEY, OLH, reports(10)), tmp_path / "archive.parquet")
    assert fold_files([str(tmp_path)], PLAN, tmp_path / "out").folded.n == 10
    with pytest.raises(InvalidValue, match="landing files alone, or archives alone"):
        fold_files([str(tmp_path), str(tmp_path / "_temporary")], PLAN, tmp_path / "out")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    with pytest.raises(InvalidValue, match=r"other\.parquet"):
        fold_files([str(tmp_path)], PLAN, tmp_path / "out2")
    with pytest.raises(InvalidValue, match="out: "):
        fold_files([str(tmp_path / "archive.parquet")], PLAN, tmp_path / "nowhere" / "out")
    assert not (tmp_path / "out2").exists()


def test_an_archive_whose_columns_are_not_those_of_its_spec_is_refused(tmp_path: Path) -> None:
    table = archive_table(KEY, OLH, reports(10))
    other = hb.OUE(epsilon=1.0, domain=9)
    wrong = archive_table(KEY._replace(spec_id=other.spec_id), other, other.randomize([1], hb.Random(seed=1)))
    tables = (table.drop_columns(["private.bucket"]), table.replace_schema_metadata(wrong.schema.metadata))
    for number, each in enumerate(tables):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(each, path)
        with pytest.raises(InvalidValue, match=rf"{number}\.parquet\.columns"):
            fold_files([str(path)], PLAN, tmp_path / "out")


def test_rows_are_named_by_a_check_and_counted_by_a_fold(tmp_path: Path) -> None:
    rows = [(KEY, bytes([at]) * 16, row) for at, row in enumerate(row_bytes(OLH, reports(200)))]
    for at in (3, 150, 151):
        rows[at] = (KEY, rows[at][1], b"short")
    rows[199] = (KEY._replace(spec_id="0" * 32), rows[199][1], rows[199][2])
    write(tmp_path / "a.parquet", rows)
    write(tmp_path / "b.parquet", [(KEY, b"\xff" * 16, rows[0][2])])
    first, second = check_files([str(tmp_path)], PLAN)
    assert first.left_out == {"malformed": (3, [3, 150, 151]), "unknown_spec": (1, [199])}
    assert (first.kind, first.rows, first.asks, second.left_out) == ("landing", 200, 1, {})
    result = fold_files([str(tmp_path)], PLAN, tmp_path / "out")
    assert result.left_out == {first.path: {"malformed": 3, "unknown_spec": 1}}
    assert result.folded.n == 197
