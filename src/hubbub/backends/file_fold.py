"""Folds files of reports: each id once, in bounded memory, on every core, and on from where it was stopped.

The files are cut into pieces (a row group of Parquet, a file of Arrow IPC). The sketches of each piece are kept in a
folder next to the result, until all of them are added up.

Ids of landing files are compared across all files first. Each id is written, with its row, to one of several files by a
keyed hash, so that each of them fits into memory however the ids were chosen. The first row of an id counts.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hubbub.backends.folding import Folded, FoldPlan, add_batch, divide
from hubbub.backends.report_files import Kind, landing_schema
from hubbub.backends.report_rows import report_ids
from hubbub.backends.stored_reports import FilePart, ReportFiles, error_line
from hubbub.core.errors import HubbubError, InvalidValue, at
from hubbub.core.private_file import replace_private_file
from hubbub.core.reports import Array, Bools, Ints
from hubbub.core.spec import canonical

Progress = Callable[[int, int, str], None]
Result = TypeVar("Result")

BUCKET_IDS = 1 << 19  # ids that are compared at a time
MOST_BUCKETS = 1 << 12
_SEEN = np.dtype([("id", "<u8", (2,)), ("row", "<u8")])
_PLAN, _REPEATED, _LOCK = "plan.json", "repeated", "lock"


class FoldStopped(HubbubError):
    """Another process folds into the same file, it cannot be written, or the files are not those of the fold before."""


class FoldResult(NamedTuple):
    """What `fold_files` did: the sketches, the rows that repeated an id, and the rows left out by file and reason."""

    folded: Folded
    files: int
    rows: int
    repeated: int
    left_out: dict[str, dict[str, int]]


class FileCheck(NamedTuple):
    """What `check_files` saw in a file: for each reason, how many rows are left out, and the first of them."""

    path: str
    kind: Kind
    rows: int
    asks: int
    left_out: dict[str, tuple[int, list[int]]]


def fold_files(
    places: Sequence[str], plan: FoldPlan, out: Path, *, progress: Progress | None = None, cores: int | None = None
) -> FoldResult:
    """Add up the reports of files into sketches, and write them to a file.

    The file appears complete or not at all. Called again with the same files after it was interrupted, it continues.

    Parameters
    ----------
    places
        Paths or URLs, as of `ReportFiles`.
    out
        The file to write. What is done so far stands in a folder of the same name with `.parts` behind it.
    progress
        Called with the rows done, all rows, and what is being done.
    cores
        How many pieces are folded at a time: as many as the process may use, unless given.
    """
    cores = cores or _cores()
    follow = progress or (lambda done, total, step: None)
    files = ReportFiles(places)
    pieces = files.pieces()
    rows = sum(piece.rows for piece in pieces)
    with _work_folder(out, files, plan) as folder:
        repeated = _find_repeated(files, folder, plan, cores, follow) if files.kind == "landing" else None
        folded, done = Folded(plan.candidates, plan.weight is not None), 0
        left_out: dict[str, dict[str, int]] = {}

        def work(number: int) -> tuple[int, Folded]:
            return number, _fold_piece(files, pieces[number], folder / f"{number}.sketches", plan, repeated)

        for number, part in _in_threads(work, range(len(pieces)), cores):
            folded.merge(part)
            done += pieces[number].rows
            for reason, count in part.left_out.items():
                of_file = left_out.setdefault(files.files[pieces[number].file].path, {})
                of_file[reason] = of_file.get(reason, 0) + count
            follow(done, rows, "adding up")
        repeats = 0 if repeated is None else sum(int(_marks(repeated, piece).sum()) for piece in pieces)
        replace_private_file(out, folded.to_bytes())
        shutil.rmtree(folder, ignore_errors=True)  # where open files cannot be deleted, the lock stays
    return FoldResult(folded, len(files.files), rows, repeats, left_out)


def check_files(
    places: Sequence[str], plan: FoldPlan, *, progress: Progress | None = None, shown: int = 5
) -> list[FileCheck]:
    """Read files as `fold_files` does, without adding anything up; rows that it would leave out are named."""
    files, checks, done = ReportFiles(places), [], 0
    pieces = files.pieces()
    rows = sum(piece.rows for piece in pieces)
    for number, file in enumerate(files.files):
        asks, left_out, before = set(), dict[str, tuple[int, list[int]]](), 0
        for piece in (piece for piece in pieces if piece.file == number):
            for start, batch in files.batches(piece):
                with at(file.path):
                    reading = plan.read(batch)
                asks |= {group.key for group in reading.groups}
                for reason, bad in divide(reading, lambda group: None).items():
                    count, first = left_out.get(reason, (0, []))
                    named = [before + start + int(row) for row in bad[: max(0, shown - len(first))]]
                    left_out[reason] = count + len(bad), first + named
                if progress is not None:
                    progress(done + start + batch.num_rows, rows, "checking")
            before += piece.rows
            done += piece.rows
        checks.append(FileCheck(file.path, file.kind, before, len(asks), left_out))
    return checks


def _fold_piece(files: ReportFiles, piece: FilePart, path: Path, plan: FoldPlan, repeated: Path | None) -> Folded:
    """What a piece comes to, from the file where it was kept, or else from its rows."""
    if path.exists():
        return Folded.from_bytes(path.read_bytes())
    folded = Folded(plan.candidates, plan.weight is not None)
    marks = None if repeated is None else _marks(repeated, piece)
    for start, batch in files.batches(piece):
        if marks is not None and marks[start : start + batch.num_rows].any():
            batch = batch.filter(_mask(marks[start : start + batch.num_rows] == 0))
        with at(files.files[piece.file].path):
            add_batch(folded, batch, plan)
    replace_private_file(path, folded.to_bytes())
    return folded


def _mask(rows: Bools) -> Any:
    import pyarrow as pa

    return pa.array(rows)


# -- ids ----------------------------------------------------------------------------------------------------------


def _find_repeated(files: ReportFiles, folder: Path, plan: FoldPlan, cores: int, follow: Progress) -> Path:
    """A file with one byte for each row of all files: 1 if an earlier row to the same ask has its id."""
    marks = folder / _REPEATED
    if marks.exists():
        return marks
    pieces = files.pieces()
    rows, done = sum(piece.rows for piece in pieces), 0
    buckets = [folder / f"ids-{number}" for number in range(min(MOST_BUCKETS, 1 + rows // BUCKET_IDS))]
    for left in folder.glob("ids-*"):
        left.unlink()
    # Whoever chooses ids must not know which bucket they go to: a random function of a universal family.
    key = np.frombuffer(os.urandom(32), dtype=np.uint64) | np.uint64(1)

    def divided(piece: FilePart) -> tuple[FilePart, Array, Ints]:
        seen = np.concatenate([*_seen(files, piece), np.zeros(0, dtype=_SEEN)])
        place = (bucket_hash(seen["id"], key) >> np.uint64(32)) * np.uint64(len(buckets)) >> np.uint64(32)
        order = np.argsort(place.astype(np.uint16), kind="stable")
        return piece, seen[order], np.searchsorted(place[order], np.arange(len(buckets) + 1))

    for piece, seen, ends in _in_threads(divided, pieces, cores):
        for number, bucket in enumerate(buckets):
            if ends[number] < ends[number + 1]:
                with bucket.open("ab") as file:
                    seen[ends[number] : ends[number + 1]].tofile(file)
        done += piece.rows
        follow(done, rows, "reading ids")
    partial, done = folder / f"{_REPEATED}.part", 0
    with partial.open("wb") as file:
        file.truncate(rows)
    marked = np.memmap(partial, dtype=np.uint8, mode="r+", shape=(rows,)) if rows else np.zeros(0, np.uint8)
    for repeated_rows, size in _in_threads(lambda bucket: _repeated_in(bucket, key), buckets, cores):
        marked[repeated_rows] = 1
        done += size
        follow(done, rows, "comparing ids")
    if isinstance(marked, np.memmap):
        marked.flush()
    del marked
    for bucket in buckets:
        bucket.unlink(missing_ok=True)
    os.replace(partial, marks)
    return marks


def _seen(files: ReportFiles, piece: FilePart) -> Iterator[Array]:
    """The ids of a piece, each with its ask and its row."""
    names = [name for name in landing_schema().names if name != "report"]
    for start, batch in files.batches(piece, names):
        with at(files.files[piece.file].path):
            rows, ids = report_ids(batch)
        seen = np.empty(len(rows), dtype=_SEEN)
        seen["id"] = ids
        seen["row"] = piece.start + start + rows
        yield seen


def bucket_hash(ids: Array, key: Array) -> Array:
    """A hash whose high 32 bits are a universal function of an id: four words of 32 bits times a secret key."""
    words = np.ascontiguousarray(ids).view(np.uint32).reshape(-1, 4)
    total = np.zeros(len(words), dtype=np.uint64)
    for column in range(4):
        total += words[:, column] * key[column]
    return total


def _repeated_in(bucket: Path, key: Array) -> tuple[Array, int]:
    """The rows of a bucket whose id an earlier row has, and how many rows there are.

    Only ids that were not seen before are kept: a bucket is large only where its ids are repeated.
    """
    size = bucket.stat().st_size // _SEEN.itemsize if bucket.exists() else 0
    known, repeats = np.zeros(0, dtype=_SEEN), [np.zeros(0, dtype=np.uint64)]
    for start in range(0, size, 2 * BUCKET_IDS):
        fresh = np.fromfile(bucket, _SEEN, 2 * BUCKET_IDS, offset=start * _SEEN.itemsize)
        both = np.concatenate([known, fresh])
        hashed = bucket_hash(both["id"], key)
        order = np.argsort(hashed)
        equal = hashed[order[1:]] == hashed[order[:-1]]
        near = order[np.append(equal, False) | np.append(False, equal)]  # almost all of the others are single
        suspects = both[near]
        exact = np.lexsort((suspects["row"], suspects["id"][:, 1], suspects["id"][:, 0]))
        ids = suspects["id"][exact]
        later = near[exact[1:]][(ids[1:] == ids[:-1]).all(axis=1)]
        repeats.append(both["row"][later])
        single = np.ones(len(both), dtype=np.bool_)
        single[later] = False
        known = both[single]
    return np.concatenate(repeats), size


def _marks(repeated: Path, piece: FilePart) -> Array:
    return np.fromfile(repeated, np.uint8, piece.rows, offset=piece.start)


# -- files and folders --------------------------------------------------------------------------------------------


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _parts(out: Path) -> Path:
    return out.with_name(f"{out.name}.parts")


@contextmanager
def _work_folder(out: Path, files: ReportFiles, plan: FoldPlan) -> Iterator[Path]:
    """The folder with what is done so far, which no other process uses meanwhile."""
    if not out.absolute().parent.is_dir():
        raise InvalidValue("out", str(out), "a file in a folder that exists")
    folder = _parts(out)
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = sqlite3.connect(folder / _LOCK, timeout=0, isolation_level=None)  # its lock ends with the process
    try:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise FoldStopped(f"{folder} is in use: another process folds into {out}") from None
            raise FoldStopped(f"{folder} cannot be written: {error_line(error)}") from error
        wanted = canonical({"plan": plan.to_json(), "files": files.fingerprint()})
        described = folder / _PLAN
        if described.exists() and described.read_text(encoding="utf-8") != wanted:
            if any(folder.glob("*.sketches")):
                left = f"{folder} has a part of another fold, of other files or options"
                raise FoldStopped(f"{left}: finish that one, or delete the folder")
            (folder / _REPEATED).unlink(missing_ok=True)
        replace_private_file(described, wanted.encode())
        yield folder
    finally:
        lock.close()


Item = TypeVar("Item")


def _in_threads(work: Callable[[Item], Result], items: Iterable[Item], cores: int) -> Iterator[Result]:
    """The results in the order in which they are done; no more than one waits for each thread."""
    rest = iter(items)
    with ThreadPoolExecutor(cores) as pool:
        pending = {pool.submit(work, item) for item in islice(rest, cores + 1)}
        try:
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                    pending |= {pool.submit(work, item) for item in islice(rest, 1)}
        finally:
            for future in pending:
                future.cancel()
