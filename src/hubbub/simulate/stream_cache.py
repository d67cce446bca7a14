"""A cache of tables of steps by devices, next to the data that they are made from."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.core.reports import Array
from hubbub.data.packages import cache_folder, digest

Facts = dict[str, Any]
"""Facts about a table, as JSON."""

CachedTable = tuple[Array, Facts]


def cached_table(
    name: str, make: Callable[[], CachedTable], *, cache: str | os.PathLike[str] | None = None
) -> CachedTable:
    """The table of this name and facts about it, memory-mapped from its file; made and written if there is no file.

    A record next to the file has its sha256: a file that has changed is made again. If the cache cannot be written, the
    table stays in memory.

    Parameters
    ----------
    name
        A name with everything that determines the table: the source and its version, and how it was read.
    make
        Makes the table.
    cache
        As of `hubbub.data.fetch`.
    """
    home = cache_folder(cache) / "streams"
    path, record = home / f"{name}.npy", home / f"{name}.json"
    stored = _read(path, record)
    if stored is not None:
        return stored
    table, facts = make()
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=home) as work:
            fresh = Path(work, path.name)
            np.save(fresh, table, allow_pickle=False)
            stated = Path(work, record.name)
            stated.write_text(json.dumps({"sha256": digest(fresh), "facts": facts}) + "\n", encoding="utf-8")
            # A process that makes it at the same time writes the same bytes; between the two it counts as changed.
            fresh.replace(path)
            stated.replace(record)
    except OSError:
        return table, facts
    return _read(path, record) or (table, facts)


def _read(path: Path, record: Path) -> CachedTable | None:
    try:
        stated = json.loads(record.read_text(encoding="utf-8"))
        if stated["sha256"] != digest(path):
            return None
        return np.load(path, mmap_mode="r", allow_pickle=False), dict(stated["facts"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
