"""Files of reports on a disk or in an object store, cut into pieces: a row group of Parquet, a file of Arrow IPC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hubbub.backends.report_files import Kind, head_of
from hubbub.core.errors import DecodeError, InvalidValue, at, needs

if TYPE_CHECKING:
    import pyarrow as pa


ENDINGS = (".parquet", ".arrow", ".feather", ".ipc")
BATCH_ROWS = 1 << 17


class FilePart(NamedTuple):
    """A part of a file that is folded at once: a row group (None for the whole file), its rows, and its first row."""

    file: int
    group: int | None
    rows: int
    start: int


class ReportFile(NamedTuple):
    """A file of reports: its place, its size and time of change, what kind it is, and the rows of each part."""

    path: str
    size: int
    changed: int
    kind: Kind
    parts: tuple[int, ...]

    @property
    def is_parquet(self) -> bool:
        """Whether it is Parquet; any other is Arrow IPC."""
        return self.path.endswith(".parquet")


class ReportFiles:
    """Files of reports on a disk or in an object store, all of one kind.

    `places`: paths or URLs (`s3://`, `gs://`, `file://`) of files, and of folders, which are searched for files whose
    names end in `.parquet`, `.arrow`, `.feather` or `.ipc` and do not begin with `.` or `_`.
    """

    def __init__(self, places: Sequence[str]) -> None:
        listing: dict[str, tuple[Any, Any]] = {}
        for place in places:
            files, listed = _listed(place)
            listing |= {info.path: (files, info) for info in listed}
        self._systems: list[Any] = []
        self.files: list[ReportFile] = []
        for path in sorted(listing):
            files, info = listing[path]
            self._systems.append(files)
            self.files.append(_described(files, info))
        if not self.files:
            raise InvalidValue("files", list(places), f"at least one file whose name ends in {', '.join(ENDINGS)}")
        if len({file.kind for file in self.files}) > 1:
            allowed = "landing files alone, or archives alone: a report may be in both, and archives have no ids"
            raise InvalidValue("files", "landing files and archives", allowed)

    @property
    def kind(self) -> Kind:
        """Whether they are landing files or archives."""
        return self.files[0].kind

    def pieces(self) -> list[FilePart]:
        """The parts of all files, in order."""
        pieces, start = [], 0
        for number, file in enumerate(self.files):
            for group, rows in enumerate(file.parts):
                pieces.append(FilePart(number, group if file.is_parquet else None, rows, start))
                start += rows
        return pieces

    def batches(self, piece: FilePart, columns: Sequence[str] | None = None) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of a piece in batches, each with the number of its first row within the piece."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file, done = self.files[piece.file], 0
        names = None if columns is None else list(columns)
        with _readable(file.path), self._systems[piece.file].open_input_file(file.path) as source:
            if piece.group is not None:
                with pq.ParquetFile(source, buffer_size=1 << 20, page_checksum_verification=True) as parquet:
                    schema = parquet.schema_arrow
                    for batch in parquet.iter_batches(BATCH_ROWS, [piece.group], names, use_threads=False):
                        yield done, batch.replace_schema_metadata(schema.metadata)
                        done += batch.num_rows
            else:
                reader = pa.ipc.open_file(source)
                for number in range(reader.num_record_batches):
                    whole = reader.get_batch(number)
                    for start in range(0, whole.num_rows, BATCH_ROWS):
                        yield done, whole.slice(start, BATCH_ROWS)
                        done += min(BATCH_ROWS, whole.num_rows - start)
        if done != piece.rows:
            raise DecodeError(
                file.path, f"{done:,} rows", f"{piece.rows:,}, as there were before: the file has changed"
            )

    def fingerprint(self) -> list[Any]:
        """What tells these files from others."""
        return [[file.path, file.size, file.changed, list(file.parts)] for file in self.files]


def _listed(place: str) -> tuple[Any, list[Any]]:
    """The file system of a path or URL, and the files there."""
    with needs("server"):
        from pyarrow import fs
    import pyarrow as pa

    try:
        files, path = (
            fs.FileSystem.from_uri(place) if "://" in place else fs.FileSystem.from_uri(str(Path(place).absolute()))
        )
        info = files.get_file_info(path)
        if info.type == fs.FileType.File:
            return files, [info]
        listed = files.get_file_info(fs.FileSelector(path, recursive=True))
    except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidValue("files", place, f"files that can be read: {error_line(error)}") from None
    names = [(info, info.path[len(path) :].strip("/").split("/")) for info in listed if info.type == fs.FileType.File]
    return files, [
        info
        for info, parts in names
        if parts[-1].endswith(ENDINGS) and not any(part.startswith((".", "_")) for part in parts)
    ]


def _described(files: Any, info: Any) -> ReportFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _readable(info.path), files.open_input_file(info.path) as source, at(info.path):
        if info.path.endswith(".parquet"):
            with pq.ParquetFile(source) as parquet:
                schema = parquet.schema_arrow
                parts = tuple(parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups))
        else:
            reader = pa.ipc.open_file(source)
            schema = reader.schema
            parts = (sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches)),)
        head = head_of(schema)
        if head is None and "report" not in schema.names:
            raise DecodeError("columns", schema.names, "those of a landing file or of an archive, with their metadata")
    return ReportFile(info.path, info.size, info.mtime_ns or 0, head.kind if head else "landing", parts)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Around reading: what Arrow says of a damaged file becomes an error that names the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DecodeError(path, error_line(error), "a whole file of Parquet or Arrow IPC") from None


def error_line(error: Exception) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split())[:200]
