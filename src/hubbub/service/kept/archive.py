"""Single reports in Parquet files, one file for each ask, in a folder next to the store.

The store names the files that count. A crash between writing a file and storing its name loses nothing and counts
nothing twice: the reports are still in the store, and the file is written again. A file that the store does not name is
set aside, and deleted when its retention is over.

An older copy of the database, restored next to newer files, does not name those files. They may be the only copy of
their reports, so nothing but retention deletes them.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import HubbubError, needs
from hubbub.core.reports import Reports
from hubbub.service.store.base import ArchiveRow, Expiry

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


_KEY = b"hubbub"
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

    def write(self, name: str, reports: Reports) -> str:
        """Write a file atomically and durably. Returns its checksum.

        A file of this name with other reports is set aside, never replaced.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {(part, key): column for part, key, column in _columns(reports)}
        order = _order(list(columns.values()))
        arrays, layout = {}, []
        for (part, key), column in columns.items():
            layout.append([part, key, column.dtype.newbyteorder("<").str, list(column.shape[1:])])
            arrays[f"{part}.{key}"] = _arrow(column[order])
        meta = json.dumps({"spec_id": reports.spec_id, "columns": layout})
        table = pa.table(arrays).replace_schema_metadata({_KEY: meta.encode()})
        path, partial = self.folder / name, self.folder / f"{name}.part"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            pq.write_table(table, file, compression="zstd")
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
                metadata = json.loads(file.schema_arrow.metadata[_KEY])
                for rows in file.iter_batches(_ROWS):
                    yield _reports(metadata, rows)
        except FileNotFoundError:
            raise ReportsMissing(f"{name} is not in the folder of reports") from None
        except (OSError, pa.ArrowInvalid) as error:
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


def _columns(reports: Reports) -> list[tuple[str, str, NDArray[Any]]]:
    return [
        *(("public", name, column) for name, column in reports.public.items()),
        *(("private", name, column) for name, column in reports.private.items()),
    ]


def _reports(metadata: dict[str, Any], rows: Any) -> Reports:
    """The reports in some rows of a file."""
    parts: dict[str, dict[str, NDArray[Any]]] = {"public": {}, "private": {}}
    for part, key, dtype, shape in metadata["columns"]:
        values = rows.column(f"{part}.{key}")
        if shape:
            column = np.frombuffer(b"".join(values.to_pylist()), dtype=dtype).reshape(-1, *shape)
        else:
            column = values.to_numpy(zero_copy_only=False)
        parts[part][key] = column.astype(np.dtype(dtype).newbyteorder("="), copy=False)
    return Reports(metadata["spec_id"], public=parts["public"], private=parts["private"])


def _order(columns: list[NDArray[Any]]) -> NDArray[np.int64]:
    rows = [np.ascontiguousarray(column).reshape(len(column), -1).view(np.uint8) for column in columns]
    joined = np.ascontiguousarray(np.concatenate(rows, axis=1))
    return np.argsort(joined.view(f"V{joined.shape[1]}")[:, 0], kind="stable")


def _arrow(column: NDArray[Any]) -> Any:
    import pyarrow as pa

    if column.ndim == 1:
        return pa.array(column)
    width = column.dtype.itemsize * int(np.prod(column.shape[1:]))
    raw = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<")).tobytes()
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(column), [None, pa.py_buffer(raw)])
