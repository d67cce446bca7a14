"""Single reports that a question keeps: packed at ingest, moved to files, read back, and estimated from.

They are in archives (`hubbub.backends.report_files`), one Parquet file for each ask, in a folder next to the store.

The store names the files that count. A crash between writing a file and storing its name loses nothing and counts
nothing twice: the reports are still in the store, and the file is written again. A file that the store does not name is
set aside, and deleted when its retention is over.

An older copy of the database, restored next to newer files, does not name those files. They may be the only copy of
their reports, so nothing but retention deletes them.
"""

import filecmp
import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from hubbub.backends import LOCAL
from hubbub.backends.report_files import SketchKey, archive_table, head_of
from hubbub.backends.report_rows import archived_reports
from hubbub.core.errors import DecodeError, HubbubError, InvalidValue, needs
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.oracle import SupportMechanism
from hubbub.service.store.base import ArchiveRow, AskKey, AskToArchive, Expiry
from hubbub.service.store.sql import Store

SET_ASIDE = "set-aside"
"""The name of the folder for such files, within the folder of reports."""

_REPORT_FILE = re.compile(
    r"(?P<question>[a-z0-9_-]+)-(?P<step>[0-9]+)-(?P<collection>[0-9a-f]{8})-[0-9a-f]{16}\.parquet(\.part)?(\.[0-9]+)?"
)


class Swept(NamedTuple):
    """The names of the files that were deleted, and of those that were set aside."""

    deleted: list[str]
    set_aside: list[str]


def sweep(folder: Path, named: Iterable[str], expired: Iterable[Expiry]) -> Swept:
    """Delete each file of reports that is not named and whose retention is over; set aside other files not named.

    Files set aside before are deleted when their retention is over. Files that are not of reports are left alone.
    """
    known = set(named)
    first_kept = {(expiry.collection[:8], expiry.question): expiry.below for expiry in expired}
    swept = Swept([], [])
    aside = folder / SET_ASIDE
    for path in sorted([*_files(folder), *_files(aside)]):
        match = _REPORT_FILE.fullmatch(path.name)
        if match is None or (path.parent == folder and path.name in known):
            continue
        if int(match["step"]) < first_kept.get((match["collection"], match["question"]), 0):
            path.unlink()
            swept.deleted.append(path.name)
        elif path.parent == folder:
            set_aside(path)
            swept.set_aside.append(path.name)
    if swept.deleted and aside.exists() and not any(aside.iterdir()):
        aside.rmdir()
    return swept


def set_aside(path: Path) -> Path:
    """Move a file into the folder `SET_ASIDE` next to it. Returns the new path."""
    aside = path.parent / SET_ASIDE
    aside.mkdir(mode=0o700, exist_ok=True)
    names = (path.name if number == 0 else f"{path.name}.{number}" for number in count())
    target = next(aside / name for name in names if not (aside / name).exists())
    os.rename(path, target)
    return target


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []


_FAST = 1
_ROWS = 1 << 16


class ReportsMissing(HubbubError):
    """Single reports that the store names are missing: an estimate from the others would be wrong."""


class Archive:
    """A folder of files that only its owner can read. Rows are sorted, so that their order does not show arrival
    times.
    """

    def __init__(self, folder: Path) -> None:
        with needs("server"):
            import pyarrow.parquet  # noqa: F401
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @staticmethod
    def name(question: str, step: int, collection: str, ask: str) -> str:
        """The name of the file for an ask."""
        return f"{question}-{step}-{collection[:8]}-{ask[:16]}.parquet"

    def write(self, name: str, key: SketchKey, mechanism: ReportFormat, reports: Reports) -> str:
        """Write a file atomically and durably. Returns its checksum.

        A file of this name with other reports is set aside, never replaced.
        """
        import pyarrow.parquet as pq

        table = archive_table(key, mechanism, reports)
        path, partial = self.folder / name, self.folder / f"{name}.part"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            pq.write_table(table, file, compression="lz4")  # read in less than half of the time of zstd
            file.flush()
            os.fsync(file.fileno())
        if path.exists() and not filecmp.cmp(path, partial, shallow=False):
            set_aside(path)
        digest = sha256_of(partial)
        os.replace(partial, path)
        self._sync()
        return digest

    def read(self, name: str) -> Reports:
        """All reports of a file; `ReportsMissing` if it does not exist or cannot be read."""
        return Reports.concat(self.batches(name))

    def batches(self, name: str) -> Iterator[Reports]:
        """The reports of a file, in chunks."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.folder / name) as file:
                head = head_of(file.schema_arrow)
                if head is None or head.key is None:
                    raise DecodeError("kind", "no archive", "an archive of reports")
                for rows in file.iter_batches(_ROWS):
                    yield archived_reports(rows, head.specs[head.key.spec_id])
        except FileNotFoundError:
            raise ReportsMissing(f"{name} is not in the folder of reports") from None
        except (OSError, pa.ArrowInvalid, InvalidValue) as error:
            raise ReportsMissing(f"{name} cannot be read: {type(error).__name__}") from error

    def check(self, row: ArchiveRow) -> None:
        """Check that a file is as it was written; `ReportsMissing` if not."""
        try:
            damaged = sha256_of(self.folder / row.name) != row.sha256
        except OSError as error:
            raise ReportsMissing(f"{row.name} cannot be read: {type(error).__name__}") from error
        if damaged:
            raise ReportsMissing(f"{row.name} is damaged: it is not the file that was written")

    def missing(self, names: Iterable[str]) -> list[str]:
        """The names of the files that do not exist, sorted."""
        return sorted(name for name in names if not (self.folder / name).is_file())

    def sweep(self, named: Iterable[str], expired: Iterable[Expiry]) -> Swept:
        """Delete files that are not named and whose retention is over; set aside other files that are not named."""
        swept = sweep(self.folder, named, expired)
        if swept.deleted or swept.set_aside:
            self._sync()
        return swept

    def _sync(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sha256_of(path: Path) -> str:
    """The SHA-256 checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def reports_folder(store: str) -> Path:
    """The folder of reports that belongs to the store of a URL."""
    scheme, _, rest = store.partition("://")
    return Path(f"{rest[1:]}.reports") if scheme == "sqlite" else Path("hubbub-reports")


def pack(reports: Reports) -> bytes:
    """Pack reports into a segment of the store."""
    return zlib.compress(reports.to_bytes(), _FAST)


def unpack(segment: bytes) -> Reports:
    """Read the reports of a segment."""
    try:
        return Reports.from_bytes(zlib.decompress(segment))
    except (zlib.error, DecodeError) as error:
        raise ReportsMissing(f"reports in the store cannot be read: {error}") from error


def move_reports(store: Store, archive: Archive, ask: AskToArchive) -> ArchiveRow:
    """Write the segments of a closed ask to a file. The commit of the returned row deletes them from the store.

    Called again, it writes the same file again.
    """
    reports = Reports.concat(map(unpack, store.kept_segments(ask.key)))
    name, mechanism = archive.name(ask.name.question, ask.number, *ask.key), ask.mechanism
    key = SketchKey(ask.collection, ask.version, *ask.name, mechanism.spec_id)
    return ArchiveRow(*ask.key, name, len(reports), archive.write(name, key, mechanism, reports))


def kept_reports(
    store: Store, archive: Archive | None, collection: str, question: str, *, first: int, last: int
) -> Iterator[tuple[int, Reports]]:
    """The single reports to a question's closed asks from step `first` to `last`, in chunks, each with its step.

    Every report is read once, whether it is in the store or in a file; `ReportsMissing` if some are lost.
    """
    for ask in store.closed_asks(collection, question, first, last):
        for reports in reports_to(store, archive, ask.key):
            yield ask.step, reports


def reports_to(store: Store, archive: Archive | None, key: AskKey) -> Iterator[Reports]:
    """The single reports that were kept of an ask, in chunks, from the store or from their file.

    `ReportsMissing` if some are lost.
    """
    # Another thread may move them meanwhile, but only from the store into a file.
    segments = [] if store.archive_of(key) else store.kept_segments(key)
    row = None if segments else store.archive_of(key)
    yield from map(unpack, segments)
    if row is None:
        return
    n = 0
    try:
        if archive is None:
            raise ReportsMissing(f"{row.name} is missing: there is no folder of reports")
        archive.check(row)
        for reports in archive.batches(row.name):
            n += len(reports)
            yield reports
        if n != row.n:
            raise ReportsMissing(f"{row.name} holds {n:,} reports instead of {row.n:,}")
    except ReportsMissing:
        if n or store.archive_of(key) is not None:  # else retention has deleted them meanwhile
            raise


def estimate_candidates(
    mechanism: ReportFormat, batches: Iterable[Reports], candidates: Sequence[Any]
) -> Estimate | None:
    """Estimate the shares of some candidates from single reports; None if there are no reports.

    A mechanism with supports counts those of the candidates alone; any other decodes its whole sketch.
    """
    if isinstance(mechanism, SupportMechanism):
        sketch = LOCAL.support(batches, mechanism, candidates)
    else:
        sketch = LOCAL.fold(batches, mechanism)
    return mechanism.estimate(sketch, candidates) if sketch.n else None
